package netns

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"github.com/entrain-network/entrain/prng"
	"github.com/entrain-network/entrain/wire"
)

// Link is a machine's connection.
type Link struct {
	Rate  float64       // bytes a second, each way
	Delay time.Duration // one way; the other end's link adds its own
	Loss  float64       // part of the sent packets that are lost
}

// Home is a link of 100 Mb/s. Two machines on such links have a round trip of 80 ms and a loss of 1
// %.
var Home = Link{Rate: 100e6 / 8, Delay: 20 * time.Millisecond, Loss: 0.01}

const (
	queueBytes = 1 << 20 // queued on a link before it drops packets
	mtu        = 1500
	setDevice  = 0x400454ca // TUNSETIFF
	tunDevice  = 0x0001     // IFF_TUN
	noHeader   = 0x1000     // IFF_NO_PI
)

// Fabric is a network of namespaces. Make it with [New].
type Fabric struct {
	tag    string
	ended  chan struct{}
	works  sync.WaitGroup
	spaces []string

	mu    sync.Mutex // guards what follows
	ports map[netip.Addr]*port
	rng   prng.Source
	sides map[netip.Addr]int // machines on different sides cannot reach each other
	lost  uint64
	sent  uint64
}

// port is the router's end of a machine's link.
type port struct {
	addr     netip.Addr
	link     Link
	file     *os.File
	up, down time.Time // until when the link is busy, each way

	mu    sync.Mutex // guards queue
	queue arrivals
	wake  chan struct{}
}

// arrival is a packet on its way to a machine.
type arrival struct {
	at     time.Time
	packet []byte
}

type arrivals []arrival

func (a arrivals) Len() int           { return len(a) }
func (a arrivals) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
func (a arrivals) Swap(i, j int)      { a[i], a[j] = a[j], a[i] }
func (a *arrivals) Push(x any)        { *a = append(*a, x.(arrival)) }
func (a *arrivals) Pop() any {
	old := *a
	last := old[len(old)-1]
	old[len(old)-1] = arrival{}
	*a = old[:len(old)-1]
	return last
}

// Missing returns why this machine cannot have a fabric, or "".
func Missing() string {
	if os.Geteuid() != 0 {
		return "network namespaces need root's rights"
	}
	if _, err := exec.LookPath("ip"); err != nil {
		return "there is no ip (iproute2)"
	}
	f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
	if err != nil {
		return "there are no TUN devices: " + err.Error()
	}
	f.Close()
	name := fmt.Sprintf("entrain-try-%d", os.Getpid())
	if out, err := exec.Command("ip", "netns", "add", name).CombinedOutput(); err != nil {
		return "no namespace can be made: " + strings.TrimSpace(string(out))
	}
	if out, err := exec.Command("ip", "netns", "del", name).CombinedOutput(); err != nil {
		return "a namespace cannot be removed: " + strings.TrimSpace(string(out))
	}
	return ""
}

// New returns an empty network; the seed determines which packets are lost. The caller must Close
// it.
func New(seed uint64) *Fabric {
	return &Fabric{
		tag: fmt.Sprintf("e%d", os.Getpid()%100_000), ended: make(chan struct{}),
		ports: map[netip.Addr]*port{}, sides: map[netip.Addr]int{}, rng: prng.New(wire.Sum("entrain/tests/netns", wire.AppendU64(nil, seed)), "loss"),
	}
}

// space creates an empty namespace.
func (f *Fabric) space(name string) (string, error) {
	ns := f.tag + "-" + name
	if err := ip("netns", "add", ns); err != nil {
		return "", err
	}
	f.spaces = append(f.spaces, ns)
	return ns, ip("-n", ns, "link", "set", "lo", "up")
}

// Machine creates a namespace with an address on a link and returns its name.
func (f *Fabric) Machine(name, address string, link Link) (string, error) {
	ns, err := f.space(name)
	if err != nil {
		return "", err
	}
	return ns, f.attach(ns, address, link)
}

// attach connects a namespace by a TUN device.
func (f *Fabric) attach(ns, address string, link Link) error {
	addr, err := netip.ParseAddr(address)
	if err != nil {
		return err
	}
	device := fmt.Sprintf("%s.%d", f.tag, len(f.ports))
	file, err := openTUN(device)
	if err != nil {
		return fmt.Errorf("TUN device %s: %w", device, err)
	}
	p := &port{addr: addr, link: link, file: file, wake: make(chan struct{}, 1)}
	f.mu.Lock()
	f.ports[addr] = p
	f.mu.Unlock()
	for _, args := range [][]string{
		{"link", "set", device, "netns", ns}, {"-n", ns, "link", "set", device, "name", "wan", "mtu", fmt.Sprint(mtu)},
		{"-n", ns, "addr", "add", address + "/32", "dev", "wan"}, {"-n", ns, "link", "set", "wan", "up"},
		{"-n", ns, "route", "add", "default", "dev", "wan"},
	} {
		if err := ip(args...); err != nil {
			return err
		}
	}
	f.works.Go(func() { f.read(p) })
	f.works.Go(func() { f.write(p) })
	return nil
}

// openTUN creates a TUN device in this process's namespace. It stays connected to the file wherever
// it is moved.
func openTUN(name string) (*os.File, error) {
	fd, err := syscall.Open("/dev/net/tun", syscall.O_RDWR|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	var request struct {
		name  [16]byte
		flags uint16
		_     [22]byte
	}
	copy(request.name[:15], name)
	request.flags = tunDevice | noHeader
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), setDevice, uintptr(unsafe.Pointer(&request))); errno != 0 {
		return nil, errors.Join(errno, syscall.Close(fd))
	}
	return os.NewFile(uintptr(fd), name), nil
}

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// read forwards the packets that a machine sends.
func (f *Fabric) read(p *port) {
	buffer := make([]byte, mtu+100)
	for {
		n, err := p.file.Read(buffer)
		if err != nil {
			return // closed
		}
		f.forward(p, buffer[:n])
	}
}

// forward queues a packet, or drops it.
func (f *Fabric) forward(from *port, packet []byte) {
	if len(packet) < 20 || packet[0]>>4 != 4 {
		return
	}
	now := time.Now()
	f.mu.Lock()
	to := f.ports[netip.AddrFrom4([4]byte(packet[16:20]))]
	if to == nil || to == from || f.sides[from.addr] != f.sides[to.addr] {
		f.mu.Unlock()
		return
	}
	f.sent++
	at, ok := from.link.pass(&from.up, now, len(packet))
	if ok {
		at, ok = to.link.pass(&to.down, at.Add(from.link.Delay+to.link.Delay), len(packet))
	}
	if !ok || float64(f.rng.Uint64()>>11)/(1<<53) < from.link.Loss {
		f.lost++
		f.mu.Unlock()
		return
	}
	f.mu.Unlock()
	to.mu.Lock()
	heap.Push(&to.queue, arrival{at, append([]byte(nil), packet...)})
	to.mu.Unlock()
	select {
	case to.wake <- struct{}{}:
	default:
	}
}

// pass returns when a packet leaves the link, or false if the queue is full.
func (l Link) pass(busy *time.Time, now time.Time, size int) (time.Time, bool) {
	if busy.Before(now) {
		*busy = now
	}
	if busy.Sub(now).Seconds()*l.Rate > queueBytes {
		return now, false
	}
	*busy = busy.Add(time.Duration(float64(size) / l.Rate * float64(time.Second)))
	return *busy, true
}

// write delivers packets to a machine when they are due.
func (f *Fabric) write(p *port) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		wait := time.Hour
		p.mu.Lock()
		for len(p.queue) > 0 {
			if wait = time.Until(p.queue[0].at); wait > 0 {
				break
			}
			next := heap.Pop(&p.queue).(arrival)
			p.mu.Unlock()
			_, _ = p.file.Write(next.packet) // fails only for a machine that is gone
			p.mu.Lock()
			wait = time.Hour
		}
		p.mu.Unlock()
		timer.Reset(wait)
		select {
		case <-timer.C:
		case <-p.wake:
		case <-f.ended:
			return
		}
	}
}

// Cut splits the network: the given addresses reach each other, and all others reach each other.
// Without addresses the network is whole.
func (f *Fabric) Cut(addresses ...string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.sides)
	for _, a := range addresses {
		f.sides[netip.MustParseAddr(a)] = 1
	}
}

// Packets returns the numbers of packets sent, and lost to chance or full queues.
func (f *Fabric) Packets() (sent, lost uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.sent, f.lost
}

// NAT creates a router with a public address on a link, and a machine behind it, and returns the
// machine's namespace. If random, the router maps each connection to another port (a symmetric
// NAT), which prevents hole punching.
func (f *Fabric) NAT(name, address string, link Link, random bool) (string, error) {
	router, err := f.Machine(name+"r", address, link)
	if err != nil {
		return "", err
	}
	inner, err := f.space(name)
	if err != nil {
		return "", err
	}
	a, b := f.tag+name+"a", f.tag+name+"b"
	for _, args := range [][]string{
		{"link", "add", a, "type", "veth", "peer", "name", b},
		{"link", "set", a, "netns", router}, {"link", "set", b, "netns", inner},
		{"-n", router, "link", "set", a, "name", "lan"}, {"-n", inner, "link", "set", b, "name", "lan"},
		{"-n", router, "addr", "add", "192.168.7.1/24", "dev", "lan"}, {"-n", inner, "addr", "add", "192.168.7.2/24", "dev", "lan"},
		{"-n", router, "link", "set", "lan", "up"}, {"-n", inner, "link", "set", "lan", "up"},
		{"-n", inner, "route", "add", "default", "via", "192.168.7.1"},
	} {
		if err := ip(args...); err != nil {
			return "", err
		}
	}
	if err := within(router, "sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"); err != nil {
		return "", err
	}
	return inner, masquerade(router, random)
}

// masquerade makes a namespace a NAT that drops unsolicited packets.
func masquerade(ns string, random bool) error {
	if _, err := exec.LookPath("nft"); err == nil {
		how := "masquerade"
		if random {
			how = "masquerade random,fully-random"
		}
		rules := `table ip nat {
	chain post { type nat hook postrouting priority 100; oifname "wan" ` + how + `; }
}
table ip filter {
	chain forward { type filter hook forward priority 0; policy drop; iifname "lan" accept; ct state established,related accept; }
	chain input { type filter hook input priority 0; policy drop; iifname "lan" accept; iifname "lo" accept; ct state established,related accept; }
}
`
		cmd := exec.Command("ip", "netns", "exec", ns, "nft", "-f", "-")
		cmd.Stdin = strings.NewReader(rules)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("nft: %w: %s", err, strings.TrimSpace(string(out)))
		}
		return nil
	}
	post := []string{"iptables", "-t", "nat", "-A", "POSTROUTING", "-o", "wan", "-j", "MASQUERADE"}
	if random {
		post = append(post, "--random-fully")
	}
	for _, args := range [][]string{
		post,
		{"iptables", "-P", "FORWARD", "DROP"}, {"iptables", "-A", "FORWARD", "-i", "lan", "-j", "ACCEPT"},
		{"iptables", "-A", "FORWARD", "-m", "conntrack", "--ctstate", "ESTABLISHED,RELATED", "-j", "ACCEPT"},
		{"iptables", "-P", "INPUT", "DROP"}, {"iptables", "-A", "INPUT", "-i", "lan", "-j", "ACCEPT"},
		{"iptables", "-A", "INPUT", "-m", "conntrack", "--ctstate", "ESTABLISHED,RELATED", "-j", "ACCEPT"},
	} {
		if err := within(ns, args...); err != nil {
			return err
		}
	}
	return nil
}

// MissingNAT returns why this machine cannot have a NAT, or "".
func MissingNAT() string {
	for _, tool := range []string{"nft", "iptables"} {
		if _, err := exec.LookPath(tool); err == nil {
			return ""
		}
	}
	return "there is neither nft nor iptables"
}

func within(ns string, args ...string) error {
	out, err := exec.Command("ip", append([]string{"netns", "exec", ns}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("in %s: %s: %w: %s", ns, strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Command returns a command to run in a namespace.
func Command(ctx context.Context, ns string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "ip", append([]string{"netns", "exec", ns}, args...)...)
}

// Close removes the namespaces. The processes in them must have ended.
func (f *Fabric) Close() error {
	close(f.ended)
	var errs []error
	for _, p := range f.ports {
		errs = append(errs, p.file.Close())
	}
	f.works.Wait()
	for _, ns := range f.spaces {
		errs = append(errs, ip("netns", "del", ns))
	}
	return errors.Join(errs...)
}
