// Package live has tests only. They look at a network of real processes as people do: they start a
// demo, open its pages in a browser, have a stranger join with the command that the pages give, and
// kill processes.
package live
