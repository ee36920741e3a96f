-- target.lua (host): an entry point is a function, and what the engine calls with a Params' address.
return {
  kernel = function(name) return string.format("static void %s(const Params p)", name) end,
  finish = function(entries)
    local text = {}
    for _, name in ipairs(entries) do
      text[#text + 1] = string.format("\nvoid %s_entry(const void *params);", name)
      text[#text + 1] = string.format("void %s_entry(const void *params) {\n  %s(*(const Params *)params);\n}", name, name)
    end
    return table.concat(text, "\n")
  end,
}
