package client

// SetLimit makes answers of more than n bytes too large.
func (c *Client) SetLimit(n int64) { c.limit = n }
