-- paged.lua: keys in pages, [pages, p.page, hk, d], of which a table has each sequence's in order. A sequence has the keys from
-- first_k[b] to used_k[b]. What each file of a layout gives is in sequence.lua.
return function()
  -- A tile of packed rows that no sequence covers has none of these.
  local function of_sequence(name)
    local read = string.format("(int)ldg_u32(p.%s + b)", name)
    return spec.q_layout == "packed" and string.format("(b >= 0 && b < p.b ? %s : 0)", read) or read
  end
  -- spot "sequence.paged.table"
  local pages = "const int *pages = p.table + b * p.table_b;"
  return {
    is_ragged = true, locals = { "nk", "row_k" },
    place = function() return "place" end,
    -- spot "sequence.paged.find_row"
    find_row = function(i)
      return pages .. "\n" .. string.format([[
int page = 0, row_of_page = 0;
if (%s < nk) {
  const u32 at = (u32)(row_k + %s);
  page = (int)ldg_u32(pages + at / (u32)p.page);
  row_of_page = (int)(at %% (u32)p.page);
}]], i, i)
    end,
    found_row = function(t) return string.format("page * p.%s_cache + row_of_page", t) end,
    -- spot "sequence.paged.found_place"
    found_place = function(t, page, row) return string.format("%s * p.%s_b + %s * p.%s_n", page, t, row, t) end,
    -- A tile begins at a multiple of `common` keys: its boxes end where pages do if the sequence begins at one too.
    -- spot "sequence.paged.declare_boxes"
    declare_boxes = function(size)
      return string.format([[
const int common = (p.page | %s) & -(p.page | %s); // the greatest power of two that divides both
const int box = row_k %% common == 0 ? common : 1;]], size, size)
    end,
    length = "nk", rows = "nk", extent = "nk", is_paged = true, inputs = { "used_k", "first_k?", "table" },
    -- spot "sequence.paged.declare"
    declare = pages .. "\n" .. string.format([[
const int row_k = p.first_k ? imax(0, imin(%s, p.nk)) : 0;
const int nk = imax(0, imin(imax(%s, 0), p.nk) - row_k);]], of_sequence("first_k"), of_sequence("used_k")),
    -- spot "sequence.paged.head"
    head = function(t, head) return string.format("%s * p.%s_h", head, t) end,
  }
end
