package oauth

import "aegis/proxy/oauth/scope"

// area is one of Gitea's scope categories, in words for people.
type area struct {
	// Title names it; Read and Write say what the two levels permit.
	Title, Read, Write string
	// Risky areas are marked.
	Risky bool
}

// areas are the texts of the areas of package scope.
var areas = [scope.Areas]area{
	scope.Repository:   {Title: "Repositories", Read: "See code, branches, pull requests, releases and builds", Write: "See and change code, branches, pull requests, releases and builds; create and delete repositories"},
	scope.Issue:        {Title: "Issues", Read: "See issues, comments, labels and milestones", Write: "See, write and change issues, comments, labels and milestones"},
	scope.Notification: {Title: "Notifications", Read: "See your notifications", Write: "See your notifications and mark them as read"},
	scope.Package:      {Title: "Packages", Read: "See packages", Write: "See, publish and delete packages"},
	scope.Organization: {Title: "Organizations", Read: "See your organizations, teams and their members", Write: "See and change your organizations, teams and their members"},
	scope.User:         {Title: "Your account", Read: "See your profile, e-mail addresses, keys and settings", Write: "See and change your profile, e-mail addresses, keys and settings", Risky: true},
	scope.Misc:         {Title: "Helpers", Read: "Use helpers such as templates and text rendering", Write: "Use helpers such as templates and text rendering"},
	scope.ActivityPub:  {Title: "Federation", Read: "See federation data", Write: "See and send federation data"},
	scope.Admin:        {Title: "Administration", Read: "See everything that administrators see", Write: "Administer the whole Gitea server: people, repositories, settings", Risky: true},
}
