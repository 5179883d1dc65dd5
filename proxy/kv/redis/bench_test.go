package redis_test

import (
	"strconv"
	"testing"
	"time"

	"aegis/proxy/kv/redis"
	"aegis/proxy/kv/redistest"
)

// Benchmark is the time of each operation against a real Redis on this machine.
func Benchmark(b *testing.B) {
	server := redistest.Start(b)
	s := open(b, redis.Options{Addresses: []string{server.Address}})
	value := make([]byte, 500)
	if err := s.Put(b.Context(), "a", value, time.Hour); err != nil {
		b.Fatal(err)
	}
	budgets := []redis.Budget{{Key: "a", Every: 1000, Burst: 1 << 30}, {Key: "b", Every: 1000, Burst: 1 << 30}, {Key: "c", Every: 1000, Burst: 1 << 30}}
	for name, op := range map[string]func(i int) error{
		"Get": func(int) error { _, err := s.Get(b.Context(), "a"); return err },
		"Put": func(i int) error { return s.Put(b.Context(), strconv.Itoa(i), value, time.Hour) },
		"Swap": func(i int) error {
			_, err := s.CompareAndSwap(b.Context(), "new/"+strconv.Itoa(i), 0, value, time.Millisecond)
			return err
		},
		"Spend1": func(int) error { _, err := s.Spend(b.Context(), budgets[:1]); return err },
		"Spend3": func(int) error { _, err := s.Spend(b.Context(), budgets); return err },
	} {
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				if err := op(i); err != nil && name != "Swap" {
					b.Fatal(err)
				}
			}
		})
	}
}
