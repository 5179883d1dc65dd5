// Package browser holds the tests that drive a real Chromium through the pages
// that people meet: consent, the sign-in at Gitea, the way back to the client,
// /account and the error pages.
//
// They need Debian's package chromium-headless-shell or chromium (or another
// Chromium, named by AEGIS_TEST_CHROMIUM) and are skipped without one, unless
// AEGIS_TEST_TOOLS=must. AEGIS_TEST_SCREENSHOTS names a folder for pictures of
// every page.
package browser
