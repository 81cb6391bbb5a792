package main

import "testing"

func TestResize(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		in   Resize
		want Resized
		ok   bool
	}{
		"landscape": {Resize{800, 600, 200}, Resized{200, 150}, true},
		"portrait":  {Resize{1, 1000, 10}, Resized{1, 10}, true},
		"nothing":   {Resize{}, Resized{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := resize(t.Context(), tc.in); got != tc.want || (err == nil) != tc.ok {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}
