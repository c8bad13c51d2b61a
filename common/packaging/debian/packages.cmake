# Debian packages by CPack, one a component: ./run package
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME jitc)
set(CPACK_PACKAGE_VENDOR jitc)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")  # each package has its own
set(CPACK_PACKAGE_CONTACT "jitc maintainers <maintainers@jitc.invalid>")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_SET_DESTDIR ON)  # the texts that name the prefix then name this one
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_CURRENT_SOURCE_DIR}/debian/compress_manuals.cmake)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL daemon library dev python)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(library_package libjitc${JITC_SOVERSION})
set(same "(= ${PROJECT_VERSION})")

# debian_package(COMPONENT PACKAGE SECTION DESCRIPTION RELATIONS...): RELATIONS are pairs of a field and its value.
function(debian_package component package section description)
  string(TOUPPER ${component} upper)
  set(prefix CPACK_DEBIAN_${upper}_PACKAGE)
  set(${prefix}_NAME ${package} PARENT_SCOPE)
  set(${prefix}_SECTION ${section} PARENT_SCOPE)
  set(CPACK_COMPONENT_${upper}_DESCRIPTION ${description} PARENT_SCOPE)
  while(ARGN)
    list(POP_FRONT ARGN field value)
    set(${prefix}_${field} ${value} PARENT_SCOPE)
  endwhile()

  # What Debian wants in each package, and an installation below another prefix does without.
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${package})
  configure_file(${CMAKE_CURRENT_SOURCE_DIR}/debian/changelog.in ${folder}/changelog @ONLY)
  execute_process(COMMAND gzip -9nkf ${folder}/changelog COMMAND_ERROR_IS_FATAL ANY)
  install(FILES ${CMAKE_CURRENT_SOURCE_DIR}/debian/copyright ${folder}/changelog.gz
          DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} COMPONENT ${component} EXCLUDE_FROM_ALL)
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/debian/${component}.lintian-overrides)
    install(FILES ${CMAKE_CURRENT_SOURCE_DIR}/debian/${component}.lintian-overrides
            DESTINATION ${CMAKE_INSTALL_DATADIR}/lintian/overrides RENAME ${package}
            COMPONENT ${component} EXCLUDE_FROM_ALL)
  endif()
endfunction()

debian_package(daemon jitc science
"compile service for solvers that generate C while they run
The daemon jitcd takes C sources from the ranks of an MPI solver, merges
identical ones, keeps compilers within a limit of processes and memory, and
caches the shared objects. It has its own compiler: nothing else is needed.
The command jitc does the same from a shell."
  SUGGESTS "gcc, ${library_package}, python3-jitc")
debian_package(library ${library_package} libs
"compile service for solvers that generate C - library
With libjitc all ranks of an MPI solver agree on one module, rank 0 alone asks
the daemon for it, and every rank ends with the same functions or the same
error. It also derives and prints C from symbolic expressions."
  RECOMMENDS "jitc ${same}")
debian_package(dev libjitc-dev libdevel
"compile service for solvers that generate C - development files
Headers for C and C++, the module for Fortran, and what CMake and pkg-config
need to find them."
  DEPENDS "${library_package} ${same}" SUGGESTS "mpi-default-dev, gfortran" SHLIBDEPS OFF)
debian_package(python python3-jitc python
"compile service for solvers that generate C - Python package
SymPy expressions or C text become functions for numpy, PETSc and others,
compiled once for all ranks of an mpi4py communicator."
  DEPENDS "python3:any, python3-numpy, ${library_package} ${same}" RECOMMENDS "jitc ${same}"
  SUGGESTS "python3-sympy, python3-mpi4py, python3-petsc4py" SHLIBDEPS OFF ARCHITECTURE all)
# Compiled by Python for itself, and that removed; for others' packages, what needs the library and who tells ld.so.
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_SOURCE_DIR}/debian/postinst
    ${CMAKE_CURRENT_SOURCE_DIR}/debian/prerm)
configure_file(debian/shlibs.in ${library_package}/shlibs @ONLY)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${CMAKE_CURRENT_BINARY_DIR}/${library_package}/shlibs
    ${CMAKE_CURRENT_SOURCE_DIR}/debian/triggers)
include(CPack)
