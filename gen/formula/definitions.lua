-- definitions.lua: masks and scores that have a name, in the language that users write. A definition
-- may be used by name in any expression; parameters are expressions, or tensors by their names.
--
-- A definition states its own range of keys and queries as given(range, test): where the test holds,
-- the range must hold; then tiles outside the range are skipped, and only the test costs at a pair.
--
-- A row is a text, or for users { text, example, help }: words that draw the mask or use the score, and a sentence or two. No
-- text has a quote in it, and a row's texts are on lines of their own (formula_builtin.c).
return {
  -- masks
  ["full"] = { "true",
    example = "mask=full",
    help = "Every query sees every key." },
  ["causal"] = { "k <= p",
    example = "mask=causal",
    help = "A query sees the keys up to its own place; the last query and the last key have the same place." },
  ["causal_top_left"] = { "k <= q",
    example = "mask=causal_top_left nq=6",
    help = "A query sees the keys up to its row number; the first query and the first key have the same place." },
  ["window(l, r)"] = { "p - k <= l && k - p <= r",
    example = "mask=window(2,0)",
    help = "A query sees its own place, the l keys before it and the r keys after it. With r = 0 it is causal." },
  ["prefix(n)"] = { "k < n || k <= p",
    example = "mask=prefix(3)",
    help = "All queries see the first n keys; every other key is causal." },
  ["chunked(n)"] = { "p / n == k / n",
    example = "mask=chunked(3)",
    help = "A query sees the keys of its own chunk of n places." },
  ["dilated(n)"] = { "(p - k) % n == 0",
    example = "mask=dilated(3)",
    help = "A query sees every n-th key, counted from its own place in both directions." },
  ["document(ids)"] = { "p >= 0 && ids[b, p] == ids[b, k]",
    example = "mask=document(ids) inputs.ids=i32[b,k] ids=0,0,0,1,1,1,1,2",
    help = "Documents one after the other in one sequence: a query sees the keys of its own document. ids has the document's number for each token; declared monotone, tiles of other documents are skipped." },
  ["document(starts, ends)"] = { "p >= 0 && k >= starts[b, p] && k < ends[b, p]",
    example = "mask=document(starts,ends) inputs.starts=i32[b,k] inputs.ends=i32[b,k] starts=0,0,0,3,3,3,3,7 ends=3,3,3,7,7,7,7,8",
    help = "The same documents, by the first key of each token's document and the first key after it." },

  -- scores
  ["softcap(c)"] = { "softcap(s, c)",
    example = "score=softcap(30.0)",
    help = "Keeps scores between -c and c: c tanh(s / c). A cap of 0 or infinity changes nothing." },
  ["softcap(x, c)"] = { "cap_of(c) * tanh(x / cap_of(c))",
    example = "score=softcap(s+bias_of*(k-p),30.0) inputs.bias_of=float",
    help = "The same of any expression x." },
  -- a cap of 0 or of infinity is none: one so large leaves every score as it is
  ["cap_of(c)"] = "c == 0.0 || abs(c) > 1e18 ? 1e18 : c",
  ["decay(rate)"] = { "s * exp((k - p) * abs(rate[h]))",
    example = "normalizer=retention score=decay(rate) inputs.rate=f32[h]",
    help = "Retention's weights: exp(-abs(rate)) for each step into the past." },
  ["alibi"] = { "s + alibi_slope * (k - p)",
    example = "score=alibi",
    help = "ALiBi with the usual slopes, 2^(-8 (h + 1) / heads)." },
  ["alibi(slope)"] = { "s + slope[h] * (k - p)",
    example = "score=alibi(slope) inputs.slope=f32[h]",
    help = "ALiBi with slopes of your own, one for each head." },
  -- 2^(-8 (h + 1) / heads); of heads that are no power of 2, those of the power below, then every
  -- second one of the power above
  ["alibi_slope"] = "h < alibi_power ? exp(-5.545177444479562 * (h + 1) / alibi_power) : exp(-2.772588722239781 * (2.0 * (h - alibi_power) + 1) / alibi_power)",
  ["alibi_power"] = "floor(exp(0.6931471805599453 * floor(1.4426950408889634 * log(nh) + 0.001)) + 0.5)",
  ["relative(table)"] = { "s + table[h, k - q + nq - 1]",
    example = "score=relative(table) inputs.table=f32[h,nq+nk-1]",
    help = "One number for each head and distance k - q." },
  ["t5(table, buckets, distance)"] = { "s + table[h, (k > p ? buckets / 2 : 0) + t5_bucket(abs(k - p), buckets / 2, distance)]",
    example = "score=t5(table,32,128) inputs.table=f32[h,32]",
    help = "T5's relative position bias in both directions: near distances have a bucket each, far distances share buckets." },
  ["t5_causal(table, buckets, distance)"] = { "s + table[h, t5_bucket(max(p - k, 0), buckets, distance)]",
    example = "mask=causal score=t5_causal(table,32,128) inputs.table=f32[h,32]",
    help = "The same for a causal mask." },
  -- near distances have a bucket each, far ones share them evenly on a logarithmic scale
  ["t5_bucket(n, buckets, distance)"] = "n < buckets / 2 ? n : min(buckets - 1, buckets / 2 + floor(log(float(max(n, 1)) / (buckets / 2)) / log(float(distance) / (buckets / 2)) * (buckets - buckets / 2) + 0.0001))",
}
