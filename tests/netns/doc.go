// Package netns tests entrain on a network of its own. Each machine is a network namespace of Linux
// in which the real program runs, and each link has a rate, a delay and a loss.
//
// A TUN device connects a namespace to a router in the test's process ([Fabric]), which delays
// packets and drops some, by a seed. That needs only namespaces and TUN devices, which kernels have
// more often than the queueing discipline netem, and lets a test cut the network in two at any
// moment. The kernel itself does NAT: a namespace that forwards, with rules of nftables or
// iptables.
//
// Tests need root, and are skipped with the reason where something is missing. ENTRAIN_NETNS=short
// runs the short tests. make netns also runs the long ones, such as a run of strangers that join,
// leave, crash and are cut off.
package netns
