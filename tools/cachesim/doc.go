// Command cachesim replays which experts a mixture's tokens used through caches of several sizes and
// policies, and says how often they would have been there, beside the best that is possible.
package main
