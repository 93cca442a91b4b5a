#!/bin/sh
# ccache.sh CCACHE COMPILER...: compiles through ccache, precompiled headers included.
# ccache takes the compilation of a precompiled header for one that uses the old one beside it, and would find a stale one. So the
# old one is removed first.
for word in "$@"; do
  case $word in *.gch) rm -f "$word" ;; esac
done
# ccache needs both to cache files that use precompiled headers.
CCACHE_SLOPPINESS=pch_defines,time_macros exec "$@"
