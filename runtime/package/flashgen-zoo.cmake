# flashgen-zoo.cmake - kernels made by the build of a project.
#
#   flashgen_add_zoo(NAME SPECS a.lua b.lua [word=value ...] ARCHS sm_80 sm_90a [host]
#     [FILTER glob] [PLANS first|N|all] [TEMPLATES dir] [EMBED [STATIC]])
#
# One rule makes the zoo of the specs, as `flashgen build` does: the directory NAME.zoo, which is
# the target's property FLASHGEN_ZOO. With EMBED the target NAME is a static library with `const
# fg_zoo NAME` in it; what links it finds NAME.h, and is linked with flashgen::flashgen or, with
# STATIC, flashgen::flashgen_static. Without EMBED it is made with `all`. The rule depends on the
# specs, on flashgen, and on the templates if they are a directory; where it runs, only kernels
# whose text has changed are compiled, and where none has, nothing is linked again.
cmake_policy(PUSH)
cmake_policy(VERSION 3.25)

function(flashgen_add_zoo name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "EMBED;STATIC" "FILTER;PLANS;TEMPLATES" "SPECS;ARCHS")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "flashgen_add_zoo(${name}): not understood: "
      "${arg_UNPARSED_ARGUMENTS}${arg_KEYWORDS_MISSING_VALUES}")
  endif()
  if(NOT arg_SPECS OR NOT arg_ARCHS)
    message(FATAL_ERROR "flashgen_add_zoo(${name}): it needs SPECS and ARCHS")
  endif()
  if(arg_STATIC AND NOT arg_EMBED)
    message(FATAL_ERROR "flashgen_add_zoo(${name}): STATIC is for EMBED")
  endif()
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if(arg_EMBED AND NOT "C" IN_LIST languages)
    message(FATAL_ERROR "flashgen_add_zoo(${name}): EMBED needs the project's language C")
  endif()

  set(dir ${CMAKE_CURRENT_BINARY_DIR}/${name}.zoo)
  set(stamp ${CMAKE_CURRENT_BINARY_DIR}/${name}.stamp)
  set(words "")
  set(files "")
  foreach(spec IN LISTS arg_SPECS)
    if(spec MATCHES "\\.lua$")
      get_filename_component(spec ${spec} ABSOLUTE BASE_DIR ${CMAKE_CURRENT_SOURCE_DIR})
      list(APPEND files ${spec})
    endif()
    list(APPEND words ${spec})
  endforeach()
  string(REPLACE ";" "," archs "${arg_ARCHS}")
  list(APPEND words --arch ${archs} -o ${dir} --stamp ${stamp} --quiet)
  if(arg_FILTER)
    list(APPEND words --filter ${arg_FILTER})
  endif()
  if(arg_PLANS)
    list(APPEND words --plans ${arg_PLANS})
  endif()
  set(byproducts ${dir}/manifest.txt)
  if(arg_EMBED)
    list(APPEND words --embed ${name})
    list(APPEND byproducts ${dir}/${name}.c ${dir}/${name}.h)
  endif()
  set(program $<TARGET_FILE:flashgen::tool>)
  if(arg_TEMPLATES)
    get_filename_component(templates ${arg_TEMPLATES} ABSOLUTE BASE_DIR ${CMAKE_CURRENT_SOURCE_DIR})
    set(program ${CMAKE_COMMAND} -E env FLASHGEN_TEMPLATES=${templates} ${program})
  endif()
  # The stamp is as new as the last run; the zoo's own files are as old as what is in them.
  add_custom_command(OUTPUT ${stamp} BYPRODUCTS ${byproducts}
    COMMAND ${program} build ${words}
    DEPENDS ${files} DEPFILE ${stamp}.d COMMENT "Kernels of ${name}" VERBATIM)

  if(arg_EMBED)
    add_custom_target(${name}_zoo DEPENDS ${stamp})
    add_library(${name} STATIC ${dir}/${name}.c ${dir}/${name}.h)
    add_dependencies(${name} ${name}_zoo)
    target_include_directories(${name} PUBLIC ${dir})
    if(arg_STATIC)
      target_link_libraries(${name} PUBLIC flashgen::flashgen_static)
    else()
      target_link_libraries(${name} PUBLIC flashgen::flashgen)
    endif()
    set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON LINKER_LANGUAGE C)
  else()
    add_custom_target(${name} ALL DEPENDS ${stamp})
  endif()
  set_target_properties(${name} PROPERTIES FLASHGEN_ZOO ${dir})
endfunction()

cmake_policy(POP)
