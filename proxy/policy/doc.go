// Package policy holds what a team's agents may do beyond the tools that they
// see: which repositories a call may name and a result may show, which branches
// and files a write may touch, how much it may carry, and how many writes an identity may
// make in an hour; all other rates are package limit's.
//
// A [Policy] has two stages. [Policy.Stage] decides before Gitea is asked;
// [Policy.Rows] is placed right around Gitea and removes from its answers what the
// team may not see. Where an operation names repositories, branches and files is
// said in sites.yaml, by operation; what is not said there and cannot be told
// from the operation's path is refused.
//
// A decision is about what Gitea will see: names are compared in lower case, a
// name that Gitea could read in two ways is refused. The rules bound what agents
// may reach; they do not replace Gitea's own permissions, which are those of the
// call's credential in any case.
package policy
