package catalog

import "strings"

// The lexicon says what people call the things and deeds of the catalog. It is
// written in plain words and compiled to stems once.

// lexicon maps stems to stems. The first meaning is the best one; later ones count less.
type lexicon map[string][]string

// compile reads lines of "word, word: meaning meaning". A text and not a map literal: it
// reads as a dictionary does, and stems need not be written by hand.
func compile(text string) lexicon {
	out := lexicon{}
	for line := range strings.Lines(text) {
		names, meaning, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		for _, name := range strings.Split(names, ",") {
			key := strings.Join(words(name), " ")
			out[key] = append(out[key], words(meaning)...)
		}
	}
	return out
}

// wordSet returns the set of the words of a text. Where questions are compared with
// a set, its words are stems.
func wordSet(text string) map[string]bool {
	out := map[string]bool{}
	for w := range strings.FieldsSeq(text) {
		out[w] = true
	}
	return out
}

// genericVerbs are verbs that many tools of many domains have; the others
// (merge, pin, star) are words like any other.
var genericVerbs = wordSet(`
list get delet creat edit add remov check set search move renam updat replac clear count download`)

// aliases are words that mean the same in questions and in the catalog.
var aliases = map[string]string{
	"repo": "repository", "repos": "repository", "repositories": "repository", "org": "organization", "orgs": "organization", "organisation": "organization",
	"organisations": "organization", "webhook": "hook", "webhooks": "hook", "artefact": "artifact", "artefacts": "artifact", "licence": "license", "licences": "license",
	"dependencies": "depend", "dependency": "depend", "depends": "depend", "stargazers": "star", "starred": "star", "e-mail": "email", "mail": "email", "mails": "email",
	"favourite": "star", "favorite": "star", "colour": "color", "prs": "pull", "pr": "pull", "mr": "pull", "mrs": "pull", "approval": "approve", "approvals": "approve",
	"collaborator": "collaborate", "collaborators": "collaborate", "assignees": "assign", "assignee": "assign", "reviewers": "reviewer", "subscription": "subscribe",
	"subscriptions": "subscribe", "subscriber": "subscribe", "subscribers": "subscribe", "protection": "protect", "protections": "protect", "protected": "protect",
	"unsubscribe": "unwatch", "me": "my", "mine": "my", "i": "my", "dependent": "depend", "blocking": "block", "newest": "latest",
	"commited": "commit", "deployment": "deploy", "deployments": "deploy", "anyone": "anybody", "settings": "preference", "setting": "preference",
}

// verbs maps the verbs of questions to those of tools, best first.
var verbs = compile(`
list, browse: list search get
protect, comment, open, start, cut, submit, issue, draft, file, propose, raise, start, compose: create
react, book, spent, invite, subscribe: add
all, everything: list search
which, where, look, lookup: get list search
who: list get search
what, why, show, see, view, read, display, tell, inspect, print, get, retrieve, open up: get list
how: get list count
is, does, do, check, verify, exist: check get list
did, has: get list check
fetch: get list download
download, export: download get
find, search: search list get
count, many: count list search get
details, info, information, latest, obtain, load, grab, peek, enumerate: get list
create, generate, new, register, send, notify, post, report, leave, attach: create add
make: create add edit
commit: create update
store, save: set create update
reply, respond, answer, lgtm, approve, establish, define, provision, init, initialize, release, ship: create
rotate, renew: set edit replace
append, insert, include, appoint, tag, label, log, record, ask, request, join, enroll, onboard, admit: add create
amend, revise, rewrite, patch: edit update
trash, nuke, prune, eliminate, clean: delete remove clear
exclude, evict, expel, unlink, disconnect, remove, drop, revoke, withdraw, offboard, fire, dismember: remove delete
locate, filter, query: search list
confirm, determine, validate: check get
finish, complete, finalize, convert, switch, toggle, mark: edit
overwrite: update replace
remind: get
let, allow, permit, assign: add edit
forbid, prevent, prohibit, require, enforce, restrict, publish: create edit
upload: create add set update
write: create edit update
add: add create set
give, grant: add set create
put: add set move create
edit, modify, adjust, alter, tweak, correct, fix, loosen, tighten, relax: edit update set
change, update: edit update set replace
set, configure, customize: set edit replace create
replace, swap: replace edit set update
rename: rename edit
move, drag, reorder: move edit
close, reopen, archive, unarchive, deactivate, activate, suspend, promote, disable, enable, turn: edit
delete, destroy, discard, purge, kill: delete remove
erase, wipe, clear, rid: delete clear remove
ditch, scrap, dump, axe, zap, yank, obliterate, bin, retract, undo, hide: delete remove
exchange, substitute: replace set edit
connect, associate, wire: link add create
pause, resume, unpause, extend, postpone, prolong, demote, upgrade, downgrade, bump, retitle, recolor, restore, revert: edit update
sort, arrange, rearrange: move order edit
bootstrap, scaffold, spin: create
list out, summarize, explain, describe, open up: get list
kick, unassign, take, off, detach, strip: remove delete
`)

// states are words for a state that something is to have; the tool that changes
// it is meant, whatever the verb ("make it private").
var states = compile(`
private, public, visibility: edit
`)

// both are verbs that are also names of things.
var both = compile(`comment, protect, react, tag, release, label, log, issue, report, download, upload, attach, assign, subscribe, archive: x
file, commit, draft, mark, publish, close, reopen, request, invite, latest, new, register, import, export: x`)

// nouns are those of both that are verbs only before an article or a number.
var nouns = compile("comment, tag, release, label, log, issue, report, latest, new, file, commit, draft: x")

// questionWords are verbs of questions, after which the deed may still come: "is
// my branch behind? update it".
var questionWords = compile("which, where, who, what, why, how, is, are, does, do, did, has, have: x")

// deeds are those of nouns that, as verbs, say nothing of a thing: a commit of a
// file is no commit that one asks for.
var deeds = compile("new, file, commit, draft: x")

// synonyms maps what people say to the catalog's words.
var synonyms = compile(`
unassign: assign
review: reviewer
main, master: branch
ticket, bug, defect, task: issue
company: organization
codebase, project: repository
ci, cd: actions workflow run status
pipeline: workflow run
build: workflow run status
workflow: actions
action, jenkins: actions workflow
kanban: project board
board, backlog: project
card: issue project
swimlane: column
squash, conflict: merge pull
rebase: merge update
approve, reject, reviewer: review
feedback: review comment
changelog: release commits
attach, upload, screenshot, binary, asset: attachment
image: attachment avatar
picture, logo: avatar
folder, directory, subfolder: tree contents
recursively: tree
code: contents file
source: contents archive
zip, tarball, tar: archive
difference: compare diff
line, overwrite: file
readme: file raw
history, blame: commits
revision, sha, hash: commit
clone, import: migrate
copy: fork
permission: collaborator
access: collaborator permission
right, rights: permission
invite: collaborator member
ban: block
mute: unwatch
watch: subscription
emoji, thumb, react, like: reaction
category: label topic
deadline: due
due: deadline
sprint: milestone
hour, minute, spent, effort: time
track, tracking, timer, clock: stopwatch time
inbox, alert, mention: notification
unread: notification new
pat: token
credential: secret token
env, environment: variable
agent, offline, online, hosted: runner
step: job
retry, restart, redo: rerun
trigger, launch, start, execute: dispatch
deploy: workflow
green, pass: combined status run
fail: failed status
red: failed combined status
documentation, docs, doc, manual, guide: wiki
registry, container, npm, docker, pypi, maven, cargo, nuget, helm: package
profile, account, person, people, login: user
somebody, someone: user member
ssh: key
oauth: app application
rule: protection
conversation: issue comment
squad, group: team
scheduled: cron
instance, site, system: admin
server: version settings
contribution: heatmap activity
graph: heatmap
html, preview: render
upstream: sync fork
allowed, maximum, limit: settings
discussion, discuss: comment timeline
reply, respond: comment
thread: comment notification
note: comment release
fan, bookmark: star
coworker, teammate, employee, participant: member
belong: my
belonging: member
lgtm: approve review
output, console, stdout, trace: log
between, versus, vs, ahead: compare
work, doing, busy: activity heatmap
subscribe: watch
forbid, prevent, prohibit, require, enforce: branch protection
slack, discord, callback: hook
dockerfile, makefile, cat: file contents
abort, stop, halt, interrupt, terminate: cancel
administrator, superuser, password: admin user edit
ping: test
land, integrate: merge
accept: approve
whoami, username: my user
`)

// phrases maps pairs of words to the catalog's words.
var phrases = compile(`
code review: review pull
build status, commit status, tests pass, test pass, checks pass, ci pass: combined status
who am: my
time tracking, track time, tracking time: stopwatch time
due date: deadline
release notes: release
access token, api token: token
line comment: review comment
request changes: review create
write access, read access, push access: collaborator add
another owner, other owner, new owner, hand over, give away: transfer
up to: sync update
who can, who could: possible
rid of: delete
part of: member
from github, from gitlab, from bitbucket: migrate
stop watch: unwatch
stop follow: unfollow
follow my, who follow: follower
force push: branch protection
request review: reviewer add
turn off, switch off: repository edit disable
turn on, switch on: repository edit enable
who watch: watcher list
who star: stargazer list
who chang, who edit, who modify, commit log: commits list
job again, run again, workflow again, build again, pipeline again, all again: rerun
clear notification, dismiss notification: mark all
clone url: repository get
look for: search
upload file, push file: contents create
branch off: branch create
set up, spin up: create
kick off, fire off, run workflow, run pipeline, run action, run build, run ci: dispatch
hook up: create add
kill job, kill run, kill build, kill pipeline, kill workflow, stop job, stop run, stop build, stop pipeline, stop workflow: cancel
did anybody, has anybody, have anybody, are there, are any, is there: list
diff between, difference between, changed between: compare
version gitea, version server: miscellaneous
permission repository: collaborator
subscribe repository, watch project: watch subscribe
who review, who approve: reviews list
activity issue, activity pull: timeline
docker imag, container imag: package
open file, open page, open fil: get
review by: reviewer
`)

// imperatives are pairs of words that a question begins with whose first one is a
// verb there, though it mostly names a thing: "label issue 5", but "issue labels".
var imperatives = compile(`
label issue, label pull, label ticket, label bug, label 0num: add label issue
tag issue, tag pull, tag ticket, tag bug, tag 0num: add label issue
tag commit, tag main, tag master, tag head, tag 0, tag revision: create tag
comment issue, comment pull, comment ticket, comment 0num: create comment
log work, log time, log hour: add time
file bug, file ticket, file issue: create issue
commit change, commit file, commit edit, push change, push file: create update file contents
mirror repository, mirror 0rep: create push mirror
star repository, star 0rep: star repository
release version: create release
project archive: edit
ban user: edit block user
`)

// phraseWords are the words of phrases.
var phraseWords = func() map[string]bool {
	out := map[string]bool{}
	for two := range phrases {
		for _, w := range strings.Fields(two) {
			out[w] = true
		}
	}
	return out
}()
