package certstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"aegis/proxy/kv"
)

// Lock implements [certmagic.Storage]: it waits until the lock is free or its
// holder has lost it, or ctx is done. Trouble of the store is waited out.
func (s *Storage) Lock(ctx context.Context, name string) error {
	for {
		ok, err := s.TryLock(ctx, name)
		if ok || err != nil && !errors.Is(err, kv.ErrUnavailable) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(s.o.Poll):
		}
	}
}

// TryLock implements [certmagic.TryLocker]: it takes the lock if it is free.
func (s *Storage) TryLock(ctx context.Context, name string) (bool, error) {
	s.mu.Lock()
	_, ours := s.locks[name]
	s.mu.Unlock()
	// Of this process's goroutines one may have it, too; the store would say the same, at the
	// price of a request.
	if ours {
		return false, nil
	}
	version, err := s.store.CompareAndSwap(ctx, leases+name, 0, []byte(rand.Text()), s.o.Lease)
	if errors.Is(err, kv.ErrConflict) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("certificates: lock: %w", err)
	}
	// Not under ctx, which may end with the caller's step while the lock is still held.
	renewing, stop := context.WithCancel(context.Background())
	l := &lock{version: version, stop: stop, done: make(chan struct{})}
	s.mu.Lock()
	s.locks[name] = l
	s.mu.Unlock()
	go s.renew(renewing, name, l)
	return true, nil
}

// renew keeps the lease until it is given back or lost.
func (s *Storage) renew(ctx context.Context, name string, l *lock) {
	defer close(l.done)
	tick := time.NewTicker(s.o.Lease / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.extend(ctx, name, l, s.o.Lease); ctx.Err() == nil && err != nil {
			s.o.Failed(err)
			if errors.Is(err, kv.ErrConflict) {
				return // another process has it now
			}
			// Two more tries before the lease runs out: a store may be away for a moment.
		}
	}
}

// extend writes the lease again, which makes it last from now. It fails once the lease has
// gone to another process: the version is of the holder's own last write, and a version never
// comes back, so that a holder which was asleep cannot take back what it has lost.
func (s *Storage) extend(ctx context.Context, name string, l *lock, lease time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	version, err := s.store.CompareAndSwap(ctx, leases+name, l.version, []byte(rand.Text()), lease)
	if err != nil {
		return fmt.Errorf("certificates: the lock could not be kept: %w", err)
	}
	l.version = version
	return nil
}

// RenewLockLease implements [certmagic.LockLeaseRenewer]. The lease is renewed as
// long as the process lives, so the hours that the library asks for are not given:
// during those no other process could take over from one that died.
func (s *Storage) RenewLockLease(ctx context.Context, name string, _ time.Duration) error {
	s.mu.Lock()
	l := s.locks[name]
	s.mu.Unlock()
	if l == nil {
		return errors.New("certificates: the lock is not held")
	}
	return s.extend(ctx, name, l, s.o.Lease)
}

// Unlock implements [certmagic.Storage]. A lease that was lost meanwhile is left to
// its new holder.
func (s *Storage) Unlock(ctx context.Context, name string) error {
	s.mu.Lock()
	l := s.locks[name]
	delete(s.locks, name)
	s.mu.Unlock()
	if l == nil {
		return errors.New("certificates: the lock is not held")
	}
	l.stop()
	<-l.done
	// A lease of a millisecond is as good as none; a deletion could hit another's.
	err := s.extend(context.WithoutCancel(ctx), name, l, time.Millisecond)
	if err != nil && !errors.Is(err, kv.ErrConflict) {
		return err
	}
	return nil
}
