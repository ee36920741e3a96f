-- environment.lua: what families and templates find by their global names, and how their files are run.
local gen, failf = ...
local environment = {}

local compiled = {} -- by name of a file: its text, and the code that came of it

-- The chunk of a file, with env as its globals. Files are run for each plan: their code is kept, which loads in a tenth of
-- the time that the text takes. translate: what makes Lua of the text, where it is none.
function environment.compile(env, name, text, translate)
  local known = compiled[name]
  local code = known and known.text == text and known.code
  local chunk, why = load(code or translate and translate(name, text) or text, "@" .. name, code and "b" or "t", env)
  if not chunk then error(why, 0) end -- it has its place
  if not code then compiled[name] = { text = text, code = string.dump(chunk) } end
  return chunk
end

-- Runs a plain Lua file of the templates in env; families and hooks call it as run(name).
function environment.run(env, name) return environment.compile(env, name, gen.read(name))() end

-- Names whose values change within an environment: plan and use.
environment.varying = setmetatable({}, { __mode = "k" }) -- by environment

-- run(name) of an environment: a file that reads nothing that changes is run once.
local function runner(env, v)
  local values = {}
  return function(name)
    if values[name] ~= nil then return values[name] end
    local reads = v.reads
    local value = environment.run(env, name)
    if v.reads == reads then values[name] = value end
    return value
  end
end

-- The globals of families and templates: pure functions, the job, and nothing that is undefined.
function environment.new(job)
  local v = { reads = 0, value = { plan = job.plan } }
  local env = {
    assert = assert, error = error, ipairs = ipairs, math = math, pairs = pairs, select = select, setmetatable = setmetatable,
    string = string, table = table, tonumber = tonumber, tostring = tostring, type = type,
    spec = job.spec, arch = job.arch, formula = job.formula,
    machine = setmetatable(job.machine, { __index = function(_, name) failf(2, "no machine has a '%s'", name) end }),
    target = job.machine.engine and "host" or "ptx",
    cdiv = function(a, b) return (a + b - 1) // b end,
  }
  env.run = runner(env, v)
  environment.varying[env] = v.value
  return setmetatable(env, { __index = function(_, name)
    v.reads = v.reads + 1
    local value = v.value[name]
    if value == nil then failf(2, "undefined name '%s'", name) end
    return value
  end })
end

return environment
