-- cost.lua: what the cost model (runtime/cost.c) makes of the work that families state, by family and
-- pass: `scale`, and the plans' own for heads up to 64, 128 and 256 wide (0: not measured), `tail` and
-- `hide` in thousandths, `block` in units of work. Made by tests/bench/fit from measurements; a family
-- that is not here counts as it says.
return {}
