// Package netns tries entrain on a network of its own: each machine is a network namespace of Linux, in which the real
// program runs, and each link has a rate, a delay and a loss.
//
// A namespace is connected by a TUN device to a router in the test's own process ([Fabric]), which holds packets back and
// drops some, by a seed. That needs nothing of the kernel but namespaces and TUN devices, both of which are more often
// there than the queueing discipline netem, and lets a test cut the network in two at any moment. NATs are the kernel's
// own: a namespace that forwards, with rules of nftables or iptables.
//
// All of it takes root's rights, and skips its tests with the reason where they are missing. The short tests run with
// ENTRAIN_NETNS=short; make netns runs the long ones too, a run of strangers that join, leave, crash and are cut off among them.
package netns
