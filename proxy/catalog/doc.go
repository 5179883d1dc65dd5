// Package catalog turns the operations of a [spec.Catalog] into the tools that
// clients see, and decides for every call which tool is meant and whether its
// arguments fit.
//
// [Load] builds an immutable [Set] once. [Set.Select] applies a team's filters
// and gives a [Selection], whose one decision serves the list, the lookup, the
// search and the raw tool alike: a tool that a team may not use does not exist
// for it, in any spelling. [Selection.Stage] is the package's place in the chain
// of handlers.
package catalog
