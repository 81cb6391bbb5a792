package config_test

import (
	"errors"
	"fmt"
	"os"

	"github.com/skalds-go/skalds/pkg/config"
)

// A configuration that cannot be used says everything that is wrong with it.
func ExampleLoadNode() {
	for name, value := range map[string]string{"NODE_CAPACITY": "many", "REDIS_PORT": "66000"} {
		if err := os.Setenv(name, value); err != nil {
			fmt.Println(err)
		}
		defer func() { _ = os.Unsetenv(name) }()
	}

	_, err := config.LoadNode()
	fmt.Println(err)

	var e *config.Error
	fmt.Println(errors.As(err, &e), len(e.Problems))
	// Output:
	// the configuration cannot be used:
	//   NODE_CAPACITY is "many", want a whole number from 1 to 100000
	//   REDIS_PORT is "66000", want a whole number from 1 to 65535
	// true 2
}

func ExampleController_Validate() {
	c := config.Controller{Host: "0.0.0.0", Port: 8000}
	fmt.Println(c.Validate() != nil)
	// Output: true
}
