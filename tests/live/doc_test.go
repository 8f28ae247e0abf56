// Package live_test looks at a network of real processes as people do: it starts a demo, opens its pages in a browser, has a stranger join
// with the command that the pages give, and kills what can be killed.
package live_test
