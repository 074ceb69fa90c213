# autoloco_proto(NAME PROTOS ... [GRPC]): one library with the generated code of the .proto files, built once.
function(autoloco_proto name)
  cmake_parse_arguments(ARG "GRPC" "" "PROTOS;DEPS" ${ARGN})
  set(out "${CMAKE_BINARY_DIR}/proto")
  file(MAKE_DIRECTORY "${out}")
  set(generated)
  foreach(proto IN LISTS ARG_PROTOS)
    string(REGEX REPLACE "\\.proto$" "" stem "${proto}")
    set(outputs "${out}/${stem}.pb.cc" "${out}/${stem}.pb.h")
    set(plugin_args)
    if(ARG_GRPC)
      list(APPEND outputs "${out}/${stem}.grpc.pb.cc" "${out}/${stem}.grpc.pb.h")
      set(plugin_args "--grpc_out=${out}" "--plugin=protoc-gen-grpc=$<TARGET_FILE:gRPC::grpc_cpp_plugin>")
    endif()
    add_custom_command(OUTPUT ${outputs}
      COMMAND protobuf::protoc "-I${CMAKE_CURRENT_SOURCE_DIR}" "--cpp_out=${out}" ${plugin_args} "${proto}"
      DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${proto}" WORKING_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}"
      COMMENT "Generating ${stem}.pb" VERBATIM)
    list(APPEND generated ${outputs})
  endforeach()
  add_library(${name} STATIC ${generated})
  set_target_properties(${name} PROPERTIES AUTOLOCO_LAYER proto CXX_CLANG_TIDY "")  # generated code
  target_include_directories(${name} SYSTEM PUBLIC "${out}")
  target_link_libraries(${name} PUBLIC protobuf::libprotobuf ${ARG_DEPS})
  if(ARG_GRPC)
    target_link_libraries(${name} PUBLIC gRPC::grpc++)
  endif()
endfunction()
