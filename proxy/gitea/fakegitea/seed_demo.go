package fakegitea

import (
	"fmt"
	"time"
)

// demo builds the world that a person meets when trying the gateway. Texts of the
// program and its documents name acme/garden with its README.md and alice/notes with
// its todo.md, so those two stay.
type demo struct {
	*builder
	alice, bob, acme *user
	garden           *repo
}

// fillDemo builds everything, beginning two weeks ago.
func fillDemo(w *world) {
	d := &demo{builder: newBuilder(w, 14*24*time.Hour, 41*time.Minute)}
	d.alice, d.bob = d.user("alice"), d.user("bob")
	d.alice.FullName, d.bob.FullName = "Alice Ahlgren", "Bob Baker"
	d.user("root1").Admin = true
	d.acme = w.addOrg("acme", d.alice)
	d.acme.FullName, d.acme.Description = "ACME Gardening", "We water plants, so that you do not have to."
	// So bob writes in acme but owns nothing there, and cannot see alice/notes: two people with
	// different rights are what shows that calls run as the person.
	d.team(d.acme, "developers", "Everyone who writes code", "write", d.bob).AllRepos = true
	d.bob.Following = []*user{d.alice}
	d.makeGarden()
	d.makeIssues()
	d.makePulls()
	d.makeRest()
}

// gardenFiles are the files of the main repository.
var gardenFiles = map[string]string{
	"README.md": "# garden\n\nA small service that decides when to water which plant.\n\n- `go run .` starts it on port 8080\n- `docs/` tells how the schedule is made\n",
	"main.go": `package main

import (
	"fmt"
	"net/http"
)

func main() {
	http.HandleFunc("/next", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, NextWatering(r.URL.Query().Get("plant")))
	})
	http.ListenAndServe(":8080", nil)
}
`,
	"schedule.go": `package main

// days between two waterings of each plant.
var days = map[string]int{
	"basil":  1,
	"cactus": 30,
	"fern":   3,
}

// NextWatering says in how many days a plant wants water.
func NextWatering(plant string) int {
	return days[plant]
}
`,
	"schedule_test.go": "package main\n\nimport \"testing\"\n\nfunc TestNextWatering(t *testing.T) {\n\tif got := NextWatering(\"fern\"); got != 3 {\n\t\tt.Fatalf(\"got %d\", got)\n\t}\n}\n",
	"go.mod":           "module example.com/garden\n\ngo 1.26\n",
	"LICENSE":          "MIT License (placeholder)\n",
	"docs/schedule.md": "# The schedule\n\nEvery plant has a number of days. Rain adds one day.\n",
	"docs/a b#1?.md":   "# An odd name\n\nThis file has a space, a hash and a question mark in its name, to try the path encoding with.\n",
	"docs/100%.txt":    "A percent sign in the name.\n",
	".editorconfig":    "root = true\n\n[*.go]\nindent_style = tab\nindent_size = 4\n",
	".gitea/workflows/ci.yaml": `name: ci
on: [push, pull_request]
jobs:
  build:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - run: go test ./...
`,
	".gitea/ISSUE_TEMPLATE/bug.md": "---\nname: Bug report\nabout: Something does not work\ntitle: \"bug: \"\n---\n\nWhat happened, and what should have happened?\n",
}

// makeGarden builds the main repository with branches, tags and releases.
func (d *demo) makeGarden() {
	g := d.repo(d.acme, d.alice, "garden", "When to water which plant", gardenFiles)
	d.garden = g
	g.Watchers, g.Topics = []*user{d.alice, d.bob}, []string{"garden", "go"}
	d.bob.Starred = []*repo{g}
	d.commit(g, "main", d.bob, "schedule: add mint", map[string]string{
		"schedule.go": gardenFiles["schedule.go"] + "\nfunc init() { days[\"mint\"] = 2 }\n",
	})
	d.release(g, d.alice, "v1.0.0", "First harvest", "The schedule knows four plants.\n", "garden-linux-amd64.txt",
		[]byte("This would be a binary.\n"))
	d.commit(g, "main", d.alice, "docs: tell about the rain", map[string]string{
		"docs/schedule.md": "# The schedule\n\nEvery plant has a number of days. Rain adds one day, a storm two.\n",
	})
	d.release(g, d.alice, "v1.1.0-rc1", "Rain", "Try it and tell us.\n", "", nil).Pre = true
	// Only branches of releases are protected, so a first write to the default branch succeeds.
	d.protect(g, 1, "release/*")
	d.branch(g, "release/v1", "main")
}

// titles are the seeds of the issues' titles: bugs and wishes in turn.
var titles = []string{
	"Cactus is watered every day", "Show the schedule as a calendar",
	"Unknown plants get water at once", "Ask a weather service",
	"Port 8080 is taken on the shed computer", "Send a mail when a plant is thirsty",
	"The schedule forgets the time zone", "More plants: tomato and pepper",
	"Umlauts in plant names: Kürbis", "Dark mode for the dashboard",
	"Fern count is off by one after a restart", "A command line for the schedule",
	"Empty plant name answers 0", "Metrics in the Prometheus form",
	"Rain on Sunday counts twice", "Let a plant skip a day",
	"The test is red on Windows", "Import plants from a CSV file",
	"Typo in docs/schedule.md", "Translate the messages",
}

// makeIssues makes forty issues with labels, milestones and comments.
func (d *demo) makeIssues() {
	g := d.garden
	kinds := []*label{
		d.label(g, "kind/bug", "ee0701", "Something does not work"),
		d.label(g, "kind/feature", "0e8a16", "Something new"),
	}
	d.label(g, "good first issue", "5319e7", "Small and well described")
	d.label(g, "needs info?", "fbca04", "The reporter has to say more")
	due := []*milestone{d.milestone(g, "v1.1", 20), nil, d.milestone(g, "v2.0 / later", 90), nil}
	people := []*user{d.alice, d.bob}
	for i := range 40 {
		title := titles[i%20]
		if i >= 20 {
			title += fmt.Sprintf(" (bed %d)", i/10)
		}
		is := d.issue(g, people[i%3%2], title,
			fmt.Sprintf("Seen in bed %d.\n\n- [ ] look at it\n- [ ] tell the others\n", i%7), kinds[i%2])
		is.Milestone = due[i%4]
		for k, text := range []string{"I can see it too.", "A watering can helps for now.", "Who takes it?"}[:i%4] {
			d.say(is, people[(i+k)%2], text)
		}
		if i%5 == 3 {
			d.close(is, d.alice)
		}
		if i%6 == 1 {
			is.Assignees = []*user{d.bob}
		}
		// Alice and bob get twenty notifications each, less than a page.
		d.w.notifyUser(people[(i+1)%2], is, nil)
	}
}

// propose makes a branch with one new file, and a pull request from it.
func (d *demo) propose(by *user, branch, message, file, text, title, body string) *issue {
	d.branch(d.garden, branch, "main")
	d.commit(d.garden, branch, by, message, map[string]string{file: text})
	return d.pull(d.garden, by, branch, "main", title, body)
}

// makePulls opens three pull requests: a reviewed one, a fresh one and a draft.
func (d *demo) makePulls() {
	first := d.propose(d.bob, "feature/tomato", "schedule: add tomato and pepper", "schedule_more.go",
		"package main\n\nfunc init() {\n\tdays[\"tomato\"] = 1\n\tdays[\"pepper\"] = 2\n}\n",
		"Add tomato and pepper", "Two plants that everybody asks for.")
	d.review(first, d.alice, "APPROVED", "Nice. One small thing in the code.", "schedule_more.go",
		"Would a table be easier to read?")
	second := d.propose(d.alice, "fix/unknown-plant", "schedule: say so when a plant is unknown", "unknown.go",
		"package main\n\n// Known says whether the schedule has the plant.\nfunc Known(plant string) bool {\n\t_, ok := days[plant]\n\treturn ok\n}\n",
		"Say so when a plant is unknown", "Fixes the second issue.")
	second.pull.Reviewers = []*user{d.bob}
	d.propose(d.bob, "wip/calendar", "calendar: first try", "calendar.go", "package main\n\n// not yet\n",
		"WIP: calendar", "Not ready.")
}

// makeRest adds the wiki, a run of the workflow and the other repositories.
func (d *demo) makeRest() {
	g := d.garden
	d.page(g, d.alice, "Home", "# Welcome\n\nThe wiki of the garden. See [[Plant list]].\n")
	d.page(g, d.bob, "Plant list", "# Plants\n\n- basil\n- cactus\n- fern\n- mint\n")
	done := d.w.addRun(g, d.alice, "ci.yaml", "main", "push", "docs: tell about the rain")
	done.Status, done.Conclusion, done.Started, done.Completed = "completed", "success", d.at, d.at.Add(42*time.Second)
	done.runner = "shed-runner"
	done.steps = []string{"Set up job", "actions/checkout@v4", "go test ./...", "Complete job"}
	// Nothing runs here, so the one log that there is was written by hand.
	done.log = "checking out acme/garden\nok  \texample.com/garden\t0.003s\nall steps passed\n"
	g.actions.variables = append(g.actions.variables, &variable{0, g.ID, "REGION", "greenhouse-1", ""})
	g.actions.secrets = append(g.actions.secrets, &secret{"DEPLOY_KEY", "", d.at, "not shown anywhere"})
	g.statuses = append(g.statuses, &commitStatus{
		ID: d.w.next("status"), SHA: g.git.branch("main").id, State: "success", Context: "ci / build",
		Description: "all steps passed", Creator: d.alice, Created: d.at, Updated: d.at,
	})
	d.w.addPackage(d.acme, d.alice, "generic", "garden", "1.0.0").Repo = g

	site := d.repo(d.acme, d.bob, "website", "The home page of ACME Gardening", map[string]string{
		"README.md": "# website\n", "index.html": "<h1>ACME Gardening</h1>\n", "css/site.css": "h1 { color: green; }\n",
	})
	d.issue(site, d.bob, "The green is too green", "It hurts on the phone.")
	notes := d.repo(d.alice, d.alice, "notes", "Private notes of alice",
		map[string]string{"README.md": "# notes\n", "todo.md": "- buy soil\n"})
	notes.Private = true
	d.issue(notes, d.alice, "Order seeds", "Before spring.")
}
