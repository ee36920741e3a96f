-- wgmma_backward.lua: not yet there; mma takes the gradients.
return { applies = function() return false, "has no backward pass" end }
