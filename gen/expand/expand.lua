-- expand.lua: drives the templates. C calls plans(job), recipe(job), switches(job) and expand(job) of the
-- table that this returns.
--
-- job: spec (the point's fields as text or booleans, and d, dv), pass (forward where the kind has no such field), plan (its fields), arch, machine (the
-- arch's row of arch.c: block_kb, cluster_threads, and each feature by its name), family, families (all, in order of preference), name,
-- spec_words, version, switches (FLASHGEN_SWITCH).
-- gen: what C gives: read(name) -> text; has(name); translate(name, text) -> Lua; plan(candidate) -> the
-- plan with all its fields if C wants its recipe, else nil; recipe(description) -> the members of Params, a
-- line each; files(folder) -> names of its Lua files, a line each; nearest(name, names); refuse(sentence).
local gen, load_layout, load_switches, load_contract, load_parts, load_environment = ... -- the chunks that expand.c names
local layout = load_layout()
local parts = load_parts(layout)
local expand = {}

local function failf(level, format, ...) error(string.format(format, ...), level > 0 and level + 1 or 0) end
local switches, contract = load_switches(gen, failf), load_contract(gen, failf)

-- In this state string.format takes texts and numbers alone: a nil would become a word of a kernel.
local format_values = string.format
function string.format(format, ...)
  for i = 1, select("#", ...) do
    local v = select(i, ...)
    if type(v) ~= "string" and type(v) ~= "number" then
      error(format_values("value %d of a format is %s", i, v == nil and "nil" or "a " .. type(v)), 2)
    end
  end
  return format_values(format, ...)
end

local environment = load_environment(gen, failf)
local compile, run, varying = environment.compile, environment.run, environment.varying

-- The row of kinds.lua.
local function kind_of(env, job) return run(env, "kinds.lua")[job.spec.kernel] end

-- The rows of a family's decisions; nil: it has none. file: the family's, without its ending.
local function switches_of(env, file)
  file = file .. "_switches.lua"
  return gen.has(file) and switches.checked(file, run(env, file)) or nil
end

-- What FLASHGEN_SWITCH forces: its names are those of any family and pass of the kind.
local function forced_switches(env, job, kind)
  if job.switches == "" then return {} end
  local lists = {}
  for _, pass in ipairs({ "forward", "backward" }) do
    for _, name in ipairs(kind.families[pass] or {}) do lists[#lists + 1] = switches_of(env, kind.family(name, pass)) end
  end
  return switches.forced(job.switches, lists)
end

-- The words that a field may have (kinds.lua), and whether one is among them.
local function words_of(env, field)
  local words = {}
  if field.file then
    for word in pairs(run(env, field.file)) do words[#words + 1] = word end
  else
    for word in gen.files(field.folder):gmatch("[^\n]+") do words[#words + 1] = word end
  end
  table.sort(words)
  return words
end

local function is_word(env, field, name)
  if field.file then return run(env, field.file)[name] ~= nil end
  return gen.has(string.format("%s/%s.lua", field.folder, name))
end

-- Refuses a spec whose field names no file of its folder, or no row of its file.
local function check_words(env, kind, spec)
  for _, field in ipairs(kind.words or {}) do
    local name = spec[field.name]
    if not is_word(env, field, name) then
      local names = words_of(env, field)
      local near = gen.nearest(name, names)
      gen.refuse(string.format('%s: there is no "%s"%s; there are: %s', field.name, name,
                               near and string.format(' (did you mean "%s"?)', near) or "", table.concat(names, ", ")))
    end
  end
end

-- A family for a spec: its environment with the hooks in it, and what its file returns.
local function open_family(env, job, name)
  local kind = kind_of(env, job)
  local file = kind.family(name, job.pass)
  check_words(env, kind, job.spec)
  env.types = run(env, "types.lua")(kind.tensors)
  env.seq = kind.sequence and run(env, kind.sequence) or false
  env.hooks = kind.hooks and run(env, kind.hooks) or {}
  return { env = env, name = name, file = file, kind = kind, family = contract.family(file .. ".lua", run(env, file .. ".lua")) }
end

-- Sets plan and use of env; returns the names of what is on, nil where the family has no decisions. One
-- family may be asked for one plan after another.
local function decide(opened, job, plan)
  local env = opened.env
  if not opened.forced then
    opened.rows, opened.forced = switches_of(env, opened.file), forced_switches(env, job, opened.kind)
  end
  local use, on = switches.evaluate(opened.rows or {}, opened.forced, job.spec, plan, env.hooks)
  varying[env].plan, varying[env].use = plan, use
  return opened.rows and on
end

-- Emission ---------------------------------------------------------------------------------------
-- A sink is a list of { text, file, line }. Text goes to the current sink; `part` changes it.

local function value_text(v)
  if type(v) == "string" then return v end
  if math.type(v) == "integer" then return tostring(v) end
  failf(3, "a value in $( ) is %s; it must be text or an integer",
        v == nil and "nil" or math.type(v) == "float" and "the float " .. v or "a " .. type(v))
end

local function add_text(sink, text, file, line)
  for piece in (text .. "\n"):gmatch("(.-)\n") do
    sink[#sink + 1] = { text = piece, file = file, line = line }
  end
end

-- Parts end without blank lines.
local function trim_parts(s)
  for _, part in ipairs(s.order) do
    while part[1] and part[#part].text == "" do part[#part] = nil end
  end
end

-- The template file and line that the function at this level above was called from.
local function caller(level)
  local _, place = pcall(error, "", level + 2)
  local file, line = place:match("^(.*):(%d+): $")
  return file, tonumber(line)
end

-- The state of one expansion: env of the templates, the parts declared so far, entry points.
local function session(job)
  local s = { env = environment.new(job), parts = {}, order = {}, entries = {}, sink = {} }

  local function emitter(file)
    return function(line, ...)
      local pieces, values = {}, select("#", ...) > 1
      for i = 1, select("#", ...) do pieces[i] = value_text((select(i, ...))) end
      local text = table.concat(pieces)
      if values then
        if not text:find("%S") then return end -- a line of empty values is no line
        local why = layout.missing(text)
        if why then error(string.format("%s:%d: %s", file, line, why), 0) end
      end
      add_text(s.sink, text, file, line)
    end
  end

  -- Runs another template file, which finds `given` under that name, and gives what that one returns. A part that it
  -- declares ends with it.
  function s.env.include(name, given)
    local outside = s.sink
    local result = compile(s.env, name, gen.read(name), gen.translate)(emitter(name), given)
    s.sink = outside
    trim_parts(s)
    return result
  end

  -- What follows, up to the next part or the file's end, is emitted only if the kernels use `name`.
  -- A part named like a row of primitives.lua is that function's body.
  function s.env.part(name)
    if s.parts[name] then failf(2, "part '%s' is declared twice", name) end
    s.sink = { name = name }
    s.parts[name] = s.sink
    s.order[#s.order + 1] = s.sink
  end

  -- Declares a macro, a part like any other: `body` is its text in terms of its parameters ("x, a, b") and of names
  -- that are known where it is used; `about`, if given, is a comment before it. The same macro may be declared again.
  function s.env.macro(name, parameters, body, about)
    local file, line = caller(2)
    local lines = { name = name }
    add_text(lines, (body:gsub("^%s+", ""):gsub("%s+$", "")), file, line)
    lines = parts.macro(name, parameters, lines)
    if about then table.insert(lines, 1, { text = "// " .. about, file = file, line = line }) end
    lines.name, lines.body = name, body
    local known = s.parts[name]
    if known and known.body == body then return end
    if known then failf(2, "part '%s' is declared twice", name) end
    s.parts[name] = lines
    s.order[#s.order + 1] = lines
  end

  -- Declares a primitive whose text follows from the caller's numbers: kind and fields of
  -- instances.lua.
  function s.env.instance(p)
    local outside = s.sink
    if not (s.instances[p[1]] and s.env.body[p[1]]) then failf(2, "no instances of '%s' on %s", p[1], job.arch) end
    if s.parts[p.name] then failf(2, "part '%s' is declared twice", p.name) end
    s.signatures[p.name] = { p.name, "void", s.instances[p[1]](p), macro = p.scalars and s.env.target == "ptx" }
    s.env.body[p[1]](p)
    s.sink = outside
    trim_parts(s)
  end

  -- The head of an entry point; the targets differ in it. blocks: that fit on a multiprocessor, which bounds the registers of
  -- a thread; nil: 1.
  function s.env.kernel(name, blocks)
    s.entries[#s.entries + 1] = name
    for _, step in ipairs(s.description.steps) do
      if step.entry == name then return s.target.kernel(name, step.threads, blocks or 1) end
    end
    failf(2, "kernel '%s' is no step of the recipe", name)
  end
  return s
end

-- Assembly ---------------------------------------------------------------------------------------

-- Library files declare parts; they emit nothing by themselves.
local function load_library(s, name) s.env.include(name) end

-- Appends shared-memory blocks { name, bytes, about } to the map, in order, 16-byte aligned, but those
-- that another step has put there; returns the bytes of all.
local function lay_out(blocks, map)
  local offset = 0
  for _, block in ipairs(blocks) do
    if not map[block[1]] then
      map[#map + 1] = { name = block[1], offset = offset, about = block[3] }
      map[block[1]] = offset
    end
    assert(map[block[1]] == offset, block[1])
    offset = offset + (block[2] + 15) // 16 * 16
  end
  return offset
end

-- Steps share one map, or have their own.
local function lay_out_steps(description)
  local map = {}
  local common = lay_out(description.shared, map)
  for _, step in ipairs(description.steps) do
    step.shared = not step.entry and 0 or step.shared and lay_out(step.shared, map) or common
  end
  return map
end

local function constants(s, out)
  local function constant(name, value, about)
    out[#out + 1] = { text = string.format("enum { %s = %d };%s", name, value,
                                           about and " // " .. about or "") }
  end
  for _, c in ipairs(s.description.constants) do constant(c[1], c[2], c[3]) end
  for _, block in ipairs(s.shared) do constant(block.name, block.offset) end
end

local function append(out, lines) table.move(lines, 1, #lines, #out + 1, out) end
local function blank(out) out[#out + 1] = { text = "" } end

local function assemble(s, job, body, params)
  local out, members = {}, {}
  layout.header(out, job, s.description, s.shared)
  add_text(members, (params:gsub("\n$", "")))
  for _, part in ipairs(parts.used(s, body, members)) do
    local lines = parts.text(s, part)
    local defines = #lines == 1 and lines[1].text:find("^#define") and out[#out].text:find("^#define")
    if not defines then blank(out) end
    append(out, lines)
    if part.name == "types" then blank(out); constants(s, out) end
  end
  blank(out)
  out[#out + 1] = { text = "typedef struct Params {" }
  append(out, members)
  out[#out + 1] = { text = "} Params;" }
  blank(out)
  append(out, body)
  add_text(out, s.target.finish(s.entries))
  return out
end

-- Have all sequences as many rows as the launch says, and are these all their rows? They may have fewer keys.
local function has_one_length(env) return not (env.seq and (env.seq.is_packed("q") or env.seq.shard)) end

-- A plan's description, the members of Params and the map of shared memory; C has the recipe then.
local function describe(opened, job, plan)
  local switched_on = decide(opened, job, plan)
  local description = contract.description(opened.file .. ".lua", opened.family.describe(job.spec, plan))
  description.switches = switched_on
  description.generation = opened.family.generation -- nil: the first
  local norm = opened.env.hooks and opened.env.hooks.norm
  description.numbers = description.numbers or norm and norm.numbers
  description.whole = has_one_length(opened.env) and job.formula.whole or nil -- nil: not known
  local shared = lay_out_steps(description)
  return description, gen.recipe(description), shared
end

-- Lists the plans of every family for a spec and arch, with the recipes of those that C wants; returns
-- the reasons of families that do not apply, and the plans that do not fit, each with its reason `why`.
function expand.plans(job)
  local refused, unfit, computes = {}, {}, {}
  for _, name in ipairs(kind_of(environment.new(job), job).families[job.pass]) do computes[name] = true end
  for _, name in ipairs(job.families) do
    if not computes[name] then
      refused[#refused + 1] = string.format("%s: has no %s pass", name, job.pass)
      goto next
    end
    local opened = open_family(environment.new(job), job, name)
    local good, why = opened.family.applies(job.spec, job.arch)
    if good then
      local fit, not_fit = opened.family.candidates(job.spec, job.arch)
      for _, candidate in ipairs(fit or {}) do
        candidate.family = name
        local plan = gen.plan(candidate)
        if plan then describe(opened, job, plan) end
      end
      for _, candidate in ipairs(not_fit or {}) do
        candidate.family = name
        unfit[#unfit + 1] = candidate
      end
    else
      refused[#refused + 1] = name .. ": " .. why
    end
    ::next::
  end
  return table.concat(refused, "; "), unfit
end

-- The decisions that are on in a variant, as text.
function expand.switches(job)
  return table.concat(decide(open_family(environment.new(job), job, job.family), job, job.plan) or {}, ", ")
end

-- One variant's recipe without its text, which takes five times as long.
function expand.recipe(job) describe(open_family(environment.new(job), job, job.family), job, job.plan) end

-- One variant's text: lines, and for each the template file and line it came from.
function expand.expand(job)
  local s, params = session(job), nil
  local env = s.env
  local opened = open_family(env, job, job.family)
  local family = opened.family
  s.description, params, s.shared = describe(opened, job, job.plan)
  s.target = run(env, env.target .. "/target.lua")
  s.signatures = {}
  s.instances = run(env, "instances.lua")
  env.body = {}
  load_library(s, "prelude.cut")
  for _, file in ipairs(run(env, "primitives.lua")) do
    if file.on ~= false then
      for _, row in ipairs(file) do s.signatures[row[1]] = row end
      load_library(s, env.target .. "/" .. file.name .. ".cut")
    end
  end
  for _, file in ipairs(family.library) do load_library(s, file) end
  for _, c in ipairs(s.description.constants) do env[c[1]] = c[2] end

  local body = {}
  s.sink = body
  env.include(s.description.template or family.template)
  return layout.indent(assemble(s, job, layout.without_unused(body, function(word) return parts.words(s, word) end, function(name) return parts.is_pure(s, name) end), params))
end

return expand
