-- small.lua: shapes that the host device runs in moments; the tests tune on them.
return {
  { b = 1, h = 2, hk = 1, nq = 40, nk = 72 },
  { b = 1, h = 1, nq = 1, nk = 130 },
}
