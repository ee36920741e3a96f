-- definitions.lua: masks and scores that have a name, in the language that users write. A definition
-- may be used by name in any expression; parameters are expressions, or tensors by their names.
--
-- A definition states its own range of keys and queries as given(range, test): where the test holds,
-- the range must hold; then tiles outside the range are skipped, and only the test costs at a pair.
return {
  -- masks
  ["full"] = "true",
  ["causal"] = "k <= p",
  ["causal_top_left"] = "k <= q",
  ["window(l, r)"] = "p - k <= l && k - p <= r",
  ["prefix(n)"] = "k < n || k <= p",
  ["chunked(n)"] = "p / n == k / n",
  ["dilated(n)"] = "(p - k) % n == 0",
  -- of one sequence that holds many: ids i32[b, k], the same number within a document; declared
  -- monotone, tiles of other documents are skipped
  ["document(ids)"] = "p >= 0 && ids[b, p] == ids[b, k]",
  -- the same from the first key of each token's document and the one behind its last, i32[b, k]
  ["document(starts, ends)"] = "p >= 0 && k >= starts[b, p] && k < ends[b, p]",

  -- scores
  ["softcap(c)"] = "softcap(s, c)",
  ["softcap(x, c)"] = "cap_of(c) * tanh(x / cap_of(c))",
  -- a cap of 0 or of infinity is none: one so large leaves every score as it is
  ["cap_of(c)"] = "c == 0.0 || abs(c) > 1e18 ? 1e18 : c",
  -- retention's weights, times exp(-abs(rate)) a step into the past; rate f32[h]
  ["decay(rate)"] = "s * exp((k - p) * abs(rate[h]))",
  ["alibi"] = "s + alibi_slope * (k - p)",
  ["alibi(slope)"] = "s + slope[h] * (k - p)",
  -- 2^(-8 (h + 1) / heads); of heads that are no power of 2, those of the power below, then every
  -- second one of the power above
  ["alibi_slope"] = "h < alibi_power ? exp(-5.545177444479562 * (h + 1) / alibi_power) : exp(-2.772588722239781 * (2.0 * (h - alibi_power) + 1) / alibi_power)",
  ["alibi_power"] = "floor(exp(0.6931471805599453 * floor(1.4426950408889634 * log(nh) + 0.001)) + 0.5)",
  -- table f32[h, nq + nk - 1]: one number for each distance k - q
  ["relative(table)"] = "s + table[h, k - q + nq - 1]",
  -- T5's buckets of distance, table f32[h, buckets]: both ways, or of a causal mask
  ["t5(table, buckets, distance)"] = "s + table[h, (k > p ? buckets / 2 : 0) + t5_bucket(abs(k - p), buckets / 2, distance)]",
  ["t5_causal(table, buckets, distance)"] = "s + table[h, t5_bucket(max(p - k, 0), buckets, distance)]",
  -- near distances have a bucket each, far ones share them evenly on a logarithmic scale
  ["t5_bucket(n, buckets, distance)"] = "n < buckets / 2 ? n : min(buckets - 1, buckets / 2 + floor(log(float(max(n, 1)) / (buckets / 2)) / log(float(distance) / (buckets / 2)) * (buckets - buckets / 2) + 0.0001))",
}
