package catalog

import "strings"

// words splits text into lower-case word stems.
func words(text string) []string {
	fields := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r < 0x80
	})
	for i, w := range fields {
		fields[i] = stem(w)
	}
	return fields
}

// stem cuts the endings that differ between a question and a description.
// It is crude on purpose: both sides go through it.
func stem(w string) string {
	if len(w) > 4 && strings.HasSuffix(w, "ies") {
		return w[:len(w)-3] + "y"
	}
	for _, end := range []string{"ches", "shes", "sses", "xes"} {
		if strings.HasSuffix(w, end) && len(w) > len(end)+1 {
			w = w[:len(w)-2]
			break
		}
	}
	if len(w) > 3 && strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") {
		w = w[:len(w)-1]
	}
	for _, end := range []string{"ing", "ed"} {
		if cut := strings.TrimSuffix(w, end); cut != w && len(cut) >= 4 {
			if n := len(cut); cut[n-1] == cut[n-2] && cut[n-1] != 's' && cut[n-1] != 'l' {
				cut = cut[:n-1]
			}
			w = cut
		}
	}
	if len(w) > 4 && strings.HasSuffix(w, "e") {
		w = w[:len(w)-1]
	}
	return w
}

// stopWord reports whether a word says nothing about which tool is meant.
func stopWord(w string) bool {
	switch w {
	case "a", "an", "the", "of", "for", "to", "in", "on", "at", "is", "are", "be", "do", "doe", "did", "it", "its", "this", "that",
		"with", "from", "and", "or", "by", "i", "we", "you", "me", "our", "us", "please", "can", "could", "want", "need", "how", "which",
		"some", "any", "thi", "into", "has", "have", "was", "were", "been", "there", "gitea", "tool", "as", "so", "if", "s", "t":
		return true
	}
	return false
}

// synonym returns what the catalog calls a thing that people call w (a stem).
func synonym(w string) []string {
	return stems(synonyms[w])
}

// phrase returns what the catalog calls a thing of two words (stems).
func phrase(pair string) []string {
	return stems(phrases[pair])
}

func stems(text string) []string {
	if text == "" {
		return nil
	}
	return words(text)
}

// synonyms maps stems to the catalog's words.
var synonyms = map[string]string{
	"pr": "pull request", "mr": "pull request merge", "ticket": "issue", "bug": "issue", "task": "issue task", "org": "organization org",
	"organisation": "organization org", "organization": "org", "repo": "repository repo", "repository": "repo", "project": "project board",
	"repositori": "repository repo", "webhook": "hook", "hook": "webhook", "ci": "actions workflow run status check", "pipelin": "workflow run actions",
	"build": "workflow run actions", "workflow": "actions", "kanban": "project board column", "board": "project column", "card": "project issue column",
	"show": "get list", "see": "get list", "view": "get list", "read": "get", "fetch": "get", "display": "get list", "what": "get list", "who": "list get",
	"retriev": "get", "find": "search list", "look": "search list get", "lookup": "search get", "make": "create", "new": "create", "open": "create open",
	"start": "create start run", "add": "create add", "writ": "create update edit", "post": "create", "change": "edit update", "chang": "edit update",
	"modify": "edit update", "updat": "edit update", "updat e": "edit", "renam": "rename edit", "remov": "remove delete", "drop": "delete", "destroy": "delete",
	"eras": "delete", "wip": "delete", "kill": "cancel delete", "stop": "stop cancel", "abort": "cancel", "close": "edit state close", "clos": "edit state close",
	"reopen": "edit state open", "approv": "review approve", "reject": "review request changes reject", "reviewer": "reviewer review", "assign": "assignee add",
	"unassign": "assignee remove", "cut": "create", "publish": "create release", "ship": "release create", "ship e": "release", "draft": "release draft",
	"tag": "tag", "version": "version release", "changelog": "release compare commits", "download": "download get", "upload": "create upload attachment",
	"attach": "attachment create", "file": "file contents", "folder": "contents tree directory list", "directory": "contents tree list", "code": "contents file",
	"sourc": "contents archive", "source": "contents archive", "zip": "archive download", "tarball": "archive download", "diff": "diff compare", "patch": "patch diff",
	"history": "commits timeline list", "log": "log commits", "blame": "commits", "sha": "commit", "checkout": "get", "clone": "fork migrate", "copy": "fork create",
	"import": "migrate", "mirror": "mirror", "member": "member", "collaborator": "collaborator", "permission": "permission collaborator", "access": "collaborator permission team",
	"invit": "collaborator add member", "grant": "add collaborator team", "revok": "remove delete", "ban": "block", "mute": "unwatch block",
	"subscrib": "subscription watch subscriber", "unsubscrib": "unwatch subscriber remove", "follow": "follow", "star": "star", "favourit": "star", "favorit": "star", "lik": "reaction star",
	"emoji": "reaction", "thumb": "reaction", "react": "reaction add", "label": "label", "categori": "label topic", "milestone": "milestone", "deadlin": "deadline due milestone",
	"sprint": "milestone", "due": "deadline", "time": "time", "hour": "time", "spent": "time add", "timer": "stopwatch", "stopwatch": "stopwatch", "depend": "dependency",
	"block": "block dependency", "link": "dependency link", "notification": "notification", "inbox": "notification", "mention": "notification mentioned", "unread": "notification new",
	"token": "token", "pat": "token", "secret": "secret", "credential": "secret token", "variabl": "variable", "env": "variable", "environment": "variable", "runner": "runner",
	"agent": "runner", "job": "job", "step": "job log", "artifact": "artifact", "artefact": "artifact", "rerun": "rerun", "retry": "rerun", "restart": "rerun",
	"trigger": "dispatch workflow", "dispatch": "dispatch", "deploy": "deploy dispatch", "green": "status", "pass": "status", "fail": "failed status", "red": "status", "check": "status check",
	"wiki": "wiki", "page": "page", "doc": "wiki contents", "documentation": "wiki contents", "readme": "contents get raw file", "package": "package", "registry": "package",
	"container": "package", "image": "package avatar", "npm": "package", "docker": "package", "me": "me", "myself": "me", "whoami": "me", "profile": "user get", "account": "user",
	"person": "user", "people": "user", "login": "user", "email": "email", "mail": "email", "ssh": "key", "gpg": "gpg key", "key": "key", "oauth": "oauth application app",
	"app": "application oauth", "protect": "protection branch", "lock": "lock", "pin": "pin", "merge": "merge pull", "squash": "merge pull", "rebas": "merge update branch",
	"conflict": "update pull merge", "comment": "comment", "reply": "comment reply", "discuss": "comment", "feedback": "review comment", "team": "team", "group": "team organization",
	"cron": "cron", "instance": "admin settings version", "server": "version settings", "user": "user", "heatmap": "heatmap activity", "activity": "activity feed", "feed": "activity",
	"topic": "topic", "languag": "language", "licens": "license", "gitignor": "gitignore template", "templat": "template", "markdown": "markdown render", "render": "render",
	"html": "render markdown", "avatar": "avatar", "picture": "avatar", "logo": "avatar", "transfer": "transfer", "archiv": "archive edit", "private": "edit visibility",
	"public": "edit visibility", "visibility": "edit", "default": "edit default", "fork": "fork", "upstream": "sync fork upstream", "sync": "sync",
}

// phrases maps pairs of stems to the catalog's words.
var phrases = map[string]string{
	"merge request": "pull", "pull request": "pull", "cod review": "review pull", "code review": "review pull", "build statu": "combined status",
	"commit statu": "status combined", "deploy key": "deploy key", "branch protection": "branch protection", "git hook": "git hook", "who am": "me",
	"time track": "time", "due dat": "deadline", "due date": "deadline", "wiki pag": "wiki page", "wiki page": "wiki page", "issue templat": "issue template",
	"sign key": "signing key", "ssh key": "key", "gpg key": "gpg key", "access token": "token", "api token": "token", "line comment": "review comment",
	"review comment": "review comment", "release not": "release", "release note": "release", "registration token": "registration token",
}
