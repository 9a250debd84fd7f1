# cpack -G DEB or RPM makes a package of each component; packages/ has what these hold besides the programs.
#
# The plugin's package is named by the Slurm series for which it was built, since Slurm loads no other.
string(REGEX MATCH "^[0-9]+[.][0-9]+" series ${WLB_SLURM_VERSION})
string(REGEX REPLACE ".*[.]0?" "" next ${series})
math(EXPR next "${next} + 1")
if(next LESS 10)
  set(next 0${next})
endif()
string(REGEX REPLACE "[0-9]+$" "${next}" next ${series})
set(same_version "${PROJECT_VERSION}-1")

set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_VENDOR "WLB")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # each component has its own
set(CPACK_PACKAGE_CONTACT ${WLB_PACKAGE_CONTACT})
set(CPACK_COMPONENTS_ALL wlb wlb-spank wlb-worker wlbd)
set(CPACK_SET_DESTDIR ON) # the programs contain paths below the prefix for which they were built
set(CPACK_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES ON)
set(CPACK_PROJECT_CONFIG_FILE ${CMAKE_SOURCE_DIR}/packages/check_prefix.cmake)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/packages/compress_manual.cmake)

set(description_wlb "training of large language models on Slurm: command, calculators and library
The command wlb starts training runs again after faults, shows their history
and plans layouts. The package has the calculators, the library libwlb, the
manual, examples, dashboards and the package wlb for Python as well.")
set(description_wlb-spank "plugin of Slurm ${series} that records training runs
It gives sbatch and srun the options --wlb-..., and starts on each node of a
step the process that reports its ranks. It loads in Slurm ${series} alone.")
set(description_wlb-worker "trainer of large language models, and checks of nodes and links
The programs of WLB that run on compute nodes over MPI.")
set(description_wlbd "coordinator of training runs on Slurm
The service records runs in PostgreSQL, finds lost nodes and faulty ranks, and
decides where a run goes on. One host of a cluster runs it.")
foreach(component ${CPACK_COMPONENTS_ALL})
  string(TOUPPER ${component} key)
  string(FIND "${description_${component}}" "\n" end)
  string(SUBSTRING "${description_${component}}" 0 ${end} summary)
  string(SUBSTRING "${description_${component}}" ${end} -1 rest)
  set(CPACK_DEBIAN_${key}_PACKAGE_NAME ${component})
  set(CPACK_DEBIAN_${key}_DESCRIPTION "${description_${component}}")
  set(CPACK_RPM_${component}_PACKAGE_NAME ${component})
  set(CPACK_RPM_${component}_PACKAGE_SUMMARY "${summary}")
  set(CPACK_COMPONENT_${key}_DESCRIPTION "${rest}")
endforeach()
set(CPACK_DEBIAN_WLB-SPANK_PACKAGE_NAME wlb-spank-${series})
set(CPACK_RPM_wlb-spank_PACKAGE_NAME wlb-spank-${series})

# ---- Debian
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_WLB_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/packages/deb/shlibs ${CMAKE_SOURCE_DIR}/packages/deb/triggers)
set(CPACK_DEBIAN_WLB_PACKAGE_RECOMMENDS "slurm-client, python3")
set(CPACK_DEBIAN_WLB_PACKAGE_SUGGESTS "zstd")
set(CPACK_DEBIAN_WLB-SPANK_PACKAGE_DEPENDS "wlb (= ${same_version})")
set(CPACK_DEBIAN_WLB-SPANK_PACKAGE_PROVIDES wlb-spank)
set(CPACK_DEBIAN_WLB-SPANK_PACKAGE_CONFLICTS wlb-spank)
set(CPACK_DEBIAN_WLB-SPANK_PACKAGE_REPLACES wlb-spank)
set(CPACK_DEBIAN_WLB-WORKER_PACKAGE_DEPENDS "wlb (= ${same_version}), openmpi-bin, libopenblas0")
set(CPACK_DEBIAN_WLBD_PACKAGE_DEPENDS "wlb (= ${same_version}), munge, systemd | systemd-standalone-sysusers")
set(CPACK_DEBIAN_WLBD_PACKAGE_RECOMMENDS "postgresql")
set(CPACK_DEBIAN_WLBD_PACKAGE_CONTROL_EXTRA
    ${CMAKE_SOURCE_DIR}/packages/deb/conffiles ${CMAKE_SOURCE_DIR}/packages/deb/postinst
    ${CMAKE_SOURCE_DIR}/packages/deb/prerm ${CMAKE_SOURCE_DIR}/packages/deb/postrm)
if(NOT WLB_SLURM_PREFIX) # another Slurm than Debian's is in no package
  foreach(key WLB-SPANK WLBD)
    string(APPEND CPACK_DEBIAN_${key}_PACKAGE_DEPENDS
           ", slurm-wlm-basic-plugins (>= ${series}), slurm-wlm-basic-plugins (<< ${next})")
  endforeach()
endif()

# ---- RPM
set(CPACK_RPM_COMPONENT_INSTALL ON)
set(CPACK_RPM_FILE_NAME RPM-DEFAULT)
set(CPACK_RPM_PACKAGE_RELEASE 1)
set(CPACK_RPM_PACKAGE_LICENSE Apache-2.0)
set(CPACK_PACKAGE_RELOCATABLE OFF)
foreach(folder ${CMAKE_INSTALL_LIBDIR} ${CMAKE_INSTALL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_LIBEXECDIR} lib/systemd lib/systemd/system
        lib/sysusers.d sbin share/bash-completion share/bash-completion/completions share/man share/man/man1 share/man/man5 share/man/man8)
  list(APPEND CPACK_RPM_EXCLUDE_FROM_AUTO_FILELIST_ADDITION ${CMAKE_INSTALL_PREFIX}/${folder}) # packages of the system own them
endforeach()
set(CPACK_RPM_wlb-spank_PACKAGE_REQUIRES "wlb = ${same_version}, slurm >= ${series}, slurm < ${next}")
set(CPACK_RPM_wlb-spank_PACKAGE_PROVIDES wlb-spank)
set(CPACK_RPM_wlb-spank_PACKAGE_CONFLICTS wlb-spank)
set(CPACK_RPM_wlb-worker_PACKAGE_REQUIRES "wlb = ${same_version}, openmpi")
set(CPACK_RPM_wlbd_PACKAGE_REQUIRES "wlb = ${same_version}, munge, systemd")
set(CPACK_RPM_wlbd_USER_FILELIST "%config(noreplace) %attr(0640,root,root) /etc/wlb/wlbd.conf")
set(CPACK_RPM_wlbd_POST_INSTALL_SCRIPT_FILE ${CMAKE_SOURCE_DIR}/packages/rpm/post)
set(CPACK_RPM_wlbd_PRE_UNINSTALL_SCRIPT_FILE ${CMAKE_SOURCE_DIR}/packages/rpm/preun)
set(CPACK_RPM_wlbd_POST_UNINSTALL_SCRIPT_FILE ${CMAKE_SOURCE_DIR}/packages/rpm/postun)
if(WLB_SLURM_PREFIX)
  set(CPACK_RPM_wlb-spank_PACKAGE_REQUIRES "wlb = ${same_version}")
endif()

include(CPack)
