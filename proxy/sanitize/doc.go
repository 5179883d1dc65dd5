// Package sanitize shows a model the text that people see. Anybody can write an
// issue or a README, and characters that no browser shows can carry instructions:
// tag characters, bidirectional controls, zero-width characters, HTML comments in
// Markdown, terminal escapes. They are taken out, or made visible, in the text of
// reading tools; every other byte stays as Gitea sent it.
//
// What scripts and emoji need stays: joiners inside emoji and between letters of
// scripts that use them, variation selectors after characters that have variants,
// flags made of tags. Unicode Technical Standard #51 and Unicode Standard Annex #9
// say which these are.
package sanitize
