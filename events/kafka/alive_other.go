//go:build !unix

package kafka

// alive cannot tell here. A request on a connection that the broker has closed ends with an unknown outcome.
func (k *conn) alive() bool { return true }
