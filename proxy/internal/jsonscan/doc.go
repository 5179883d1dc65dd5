// Package jsonscan finds its way through JSON text (RFC 8259) without decoding
// it: it checks a document's syntax and depth, and gives the byte spans of array
// elements and object members, so that the layers above can cut, pick and splice
// while every other byte stays as it came.
//
// [Check] is for foreign bytes. The other functions expect text that Check has
// accepted; on anything else their result is meaningless, but they neither panic
// nor read outside the slice.
package jsonscan
