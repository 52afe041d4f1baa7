# Runs during an install: IDEM_PROGRAM writes its manual and completions below IDEM_SHARE.
file(REMOVE_RECURSE ${IDEM_SHARE}/man/idem-pages)
file(MAKE_DIRECTORY ${IDEM_SHARE}/man/man1 ${IDEM_SHARE}/man/man5 ${IDEM_SHARE}/man/idem-pages
  ${IDEM_SHARE}/bash-completion/completions ${IDEM_SHARE}/zsh/vendor-completions
  ${IDEM_SHARE}/fish/vendor_completions.d)
execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${IDEM_PROGRAM} man --into ${IDEM_SHARE}/man/idem-pages)
file(GLOB pages ${IDEM_SHARE}/man/idem-pages/*)
foreach(page IN LISTS pages)
  string(REGEX MATCH "[0-9]$" section ${page})
  get_filename_component(name ${page} NAME)
  # Without a name and a time in it, so that the same pages are the same bytes.
  execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND gzip -9n INPUT_FILE ${page}
    OUTPUT_FILE ${IDEM_SHARE}/man/man${section}/${name}.gz)
endforeach()
file(REMOVE_RECURSE ${IDEM_SHARE}/man/idem-pages)
foreach(place bash=bash-completion/completions/idem zsh=zsh/vendor-completions/_idem
    fish=fish/vendor_completions.d/idem.fish)
  string(REPLACE "=" ";" place ${place})
  list(GET place 0 shell)
  list(GET place 1 file)
  execute_process(COMMAND_ERROR_IS_FATAL ANY COMMAND ${IDEM_PROGRAM} completion ${shell}
    OUTPUT_FILE ${IDEM_SHARE}/${file})
endforeach()
