package participant

import (
	"context"
	"errors"
	"fmt"

	"github.com/entrain-network/entrain/engine/vulkan"
	"github.com/entrain-network/entrain/host"
	"github.com/entrain-network/entrain/p2p/lp2p"
)

// workersMax is beyond the cores of any machine; each worker has memory of its own.
const workersMax = 4096

// CheckMachine refuses a number of workers that no machine has, and what names no device.
func CheckMachine(workers int, device string) error {
	if workers < 1 || workers > workersMax {
		return fmt.Errorf("--workers %d: want 1 to %d", workers, workersMax)
	}
	return vulkan.Check(device)
}

// checkPool refuses what cannot be the name of a pool.
func checkPool(name string) error {
	if name != "" && !host.RunNameValid(name) {
		return fmt.Errorf("--pool %q is not a pool's name", name)
	}
	return nil
}

// Check returns every fault of the options that shows without the chain, in the words of the
// command line.
func (p *Options) Check() error {
	errs := []error{p.Reaching.Check(), CheckMachine(p.Workers, p.Device), checkPool(p.Pool)}
	fault := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	fault(p.Upload > 0 && p.Upload < lp2p.UploadMin, "--limit-upload: %d bytes a second for peers, want at least %d, or they give this one up", p.Upload, lp2p.UploadMin)
	fault(p.Pool != "" && p.Stake == 0, "--pool: say how much of the pool's to put up with --stake N")
	fault(p.Checkpoints < 0, "--checkpoints %d: want 0 or more", p.Checkpoints)
	fault(p.Evaluate == 0 && len(p.Look.Prompts)+len(p.Look.Tasks) > 0, "--sample and --task: say after how many steps with --evaluate N")
	return errors.Join(errs...)
}

// Check is as Options.Check, and asks the subnet, if there is one.
func (o *ValidatorOptions) Check(ctx context.Context) (err error) {
	errs := []error{CheckMachine(o.Workers, o.Device), checkPool(o.Pool)}
	if o.Stake == 0 {
		errs = append(errs, errors.New("--stake 0: a seat takes at least 1 token"))
	}
	if err = errors.Join(errs...); err != nil || o.NetUID == 0 || o.weigher != nil {
		return err
	}
	if o.weigher, err = newWeigher(ctx, o.Getenv, o.NetUID); err != nil {
		return fmt.Errorf("--bittensor %d: %w", o.NetUID, err)
	}
	o.weigher.Tell = o.Tell
	return nil
}
