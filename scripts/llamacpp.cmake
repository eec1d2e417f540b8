# Has llama.cpp built in less time (CMAKE_PROJECT_llama.cpp_INCLUDE): many files at once, and less optimisation of what no figure hangs on.
# What computes (ggml, llama and the sampling of tokens) keeps its own.
function(llmparity_quick)
	foreach(target llama-common mtmd server-context llama-server-impl)
		set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
	endforeach()
	# sampling.cpp for its optimisation; what the others define, their neighbours use otherwise.
	set(mtmd ${CMAKE_SOURCE_DIR}/tools/mtmd)
	set(common ${CMAKE_SOURCE_DIR}/common)
	set_source_files_properties(${common}/json.cpp ${common}/sampling.cpp DIRECTORY common PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
	set_source_files_properties(${mtmd}/mtmd-helper.cpp ${mtmd}/mtmd-helper-gen.cpp DIRECTORY tools/mtmd
		PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
	foreach(target llama-common server-context llama-server-impl cpp-httplib)
		target_compile_options(${target} PRIVATE -O1)
	endforeach()
	set_source_files_properties(${common}/sampling.cpp DIRECTORY common PROPERTIES COMPILE_OPTIONS -O3)
	set(llama ${CMAKE_SOURCE_DIR}/src)
	foreach(file chat grammar model-saver quant)
		set_source_files_properties(${llama}/llama-${file}.cpp DIRECTORY src PROPERTIES COMPILE_OPTIONS -O1)
	endforeach()
	foreach(file kv-cache-dsa-iswa kv-cache-dsa kv-cache-dsv4 kv-cache-iswa kv-cache-msa memory-hybrid-idx memory-hybrid-iswa
			memory-hybrid memory-recurrent)
		set_source_files_properties(${llama}/llama-${file}.cpp DIRECTORY src PROPERTIES SKIP_UNITY_BUILD_INCLUSION OFF)
	endforeach()
	# With AMX, llama.cpp 11434 ended with SIGILL on a virtual machine where AMX itself worked.
	if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
		target_compile_options(ggml-cpu PRIVATE -mno-amx-int8 -mno-amx-bf16)
	endif()
	target_compile_options(mtmd PRIVATE -O0) # images and sound, which are never asked for
endfunction()
cmake_language(DEFER CALL llmparity_quick)
