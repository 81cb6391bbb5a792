package embedded_test

import (
	"context"
	"regexp"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/skalds-go/skalds/pkg/embedded"
)

func startRedis(t *testing.T) *redis.Client {
	t.Helper()
	server, err := embedded.StartRedis(embedded.RedisConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestRedisNamesItsRun(t *testing.T) {
	t.Parallel()
	runID := regexp.MustCompile(`(?m)^run_id:([0-9a-f]{40})\r$`)
	ids := make(map[string]bool)
	for range 2 {
		client := startRedis(t)
		for range 2 {
			for _, section := range [][]string{nil, {"server"}, {"SERVER"}} {
				info, err := client.Info(t.Context(), section...).Result()
				if err != nil {
					t.Fatal(err)
				}
				m := runID.FindStringSubmatch(info)
				if m == nil {
					t.Fatalf("INFO %v has no run_id:\n%s", section, info)
				}
				ids[m[1]] = true
			}
		}
		if info, err := client.Info(t.Context(), "clients").Result(); err != nil || !regexp.MustCompile(`connected_clients:\d`).MatchString(info) {
			t.Errorf("INFO clients: %q, %v", info, err)
		}
	}
	if len(ids) != 2 {
		t.Errorf("two servers answered %d run ids: want one each, always the same", len(ids))
	}
}

func TestRedisKeysExpireInRealTime(t *testing.T) {
	t.Parallel()
	client := startRedis(t)
	ctx := t.Context()
	if err := client.HSet(ctx, "short", "field", "value").Err(); err != nil {
		t.Fatal(err)
	}
	if err := client.PExpire(ctx, "short", 150*time.Millisecond).Err(); err != nil {
		t.Fatal(err)
	}
	if err := client.Set(ctx, "long", "value", time.Hour).Err(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func(ctx context.Context) bool {
		n, err := client.Exists(ctx, "short").Result()
		return err == nil && n == 0
	})
	left, err := client.PTTL(ctx, "long").Result()
	if err != nil || left <= 0 || left >= time.Hour {
		t.Errorf("the other key has %v left (%v), want a little less than an hour", left, err)
	}
}

// TestRedisHasTheCommandsOfTheRegistry runs the commands that the node registry lives on.
func TestRedisHasTheCommandsOfTheRegistry(t *testing.T) {
	t.Parallel()
	client := startRedis(t)
	ctx := t.Context()

	script := redis.NewScript(`
		if redis.call('HGET', KEYS[1], 'owner') == false then
			redis.call('HSET', KEYS[1], 'owner', ARGV[1], 'n', 0)
		elseif redis.call('HGET', KEYS[1], 'owner') ~= ARGV[1] then
			return -1
		end
		redis.call('PEXPIRE', KEYS[1], ARGV[2])
		return redis.call('HINCRBY', KEYS[1], 'n', 1)`)
	for i, step := range []struct {
		owner string
		want  int64
	}{{"a", 1}, {"a", 2}, {"b", -1}} { // EVALSHA that misses, then EVAL; EVALSHA that hits; a refusal
		n, err := script.Run(ctx, client, []string{"skalds:node:{n1}"}, step.owner, 30_000).Int64()
		if err != nil || n != step.want {
			t.Errorf("step %d: %d, %v; want %d", i, n, err, step.want)
		}
	}
	if ttl, err := client.PTTL(ctx, "skalds:node:{n1}").Result(); err != nil || ttl <= 0 {
		t.Errorf("the script set no expiry: %v, %v", ttl, err)
	}

	pipe := client.Pipeline()
	for _, id := range []string{"n1", "n2", "n3"} {
		pipe.ZAdd(ctx, "skalds:nodes", redis.Z{Score: 1, Member: id})
		pipe.HSet(ctx, "skalds:node:{"+id+"}:tasks", "t-"+id, "1")
		pipe.Expire(ctx, "skalds:node:{"+id+"}:tasks", time.Minute)
	}
	all := pipe.ZRange(ctx, "skalds:nodes", 0, -1)
	tasks := pipe.HGetAll(ctx, "skalds:node:{n2}:tasks")
	if _, err := pipe.Exec(ctx); err != nil {
		t.Fatal(err)
	}
	if len(all.Val()) != 3 || tasks.Val()["t-n2"] != "1" {
		t.Errorf("pipeline answered %v and %v", all.Val(), tasks.Val())
	}

	now, err := client.Time(ctx).Result()
	if err != nil || time.Since(now).Abs() > time.Minute {
		t.Errorf("TIME: %v, %v", now, err)
	}
}
