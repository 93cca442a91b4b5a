#!/usr/bin/env bash
# Counts assertions of the C++ tests that compare a text with prose: EXPECT_ or ASSERT_ whose expected side (every argument but the
# first) has a string literal of seven or more words. A test compares codes, fields, names or the word that matters; the wording of a
# message is compared once. Fails above 60.
#
#   scripts/count_prose_tests.sh              the count
#   scripts/count_prose_tests.sh --list       FILE:LINE: TEXT for each
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

git ls-files -co --exclude-standard -- 'tests/**' | grep -E '\.(cc|h)$' |
  perl -e '
  use strict;
  my ($max, $words, $list, $found) = (60, 7, @ARGV && $ARGV[0] eq "--list", 0);
  while (my $name = <STDIN>) {
    chomp $name;
    open my $input, "<", $name or next;
    my $text = do { local $/; <$input> };
    close $input;
    while ($text =~ /\b(?:EXPECT|ASSERT)_[A-Z_]+\(/g) {
      my ($start, $at, $depth, $argument, $literal, @prose) = ($-[0], pos $text, 1, 0, "");
      while ($depth > 0 && $at < length $text) {
        my $rest = substr $text, $at, 20000;
        if ($rest =~ /^"((?:[^"\\]|\\.)*)"(\s*)/s) {
          $literal .= $1;
          $at += length $&;
          next if substr($text, $at, 1) eq "\"";
          my $count = () = $literal =~ /(?<![\w\/.-])[A-Za-z]+(?:\x27[a-z]+)?(?=[ ,;:.]|$)/g;
          push @prose, $literal if $argument > 0 && $count >= $words;
          $literal = "";
          next;
        }
        if ($rest =~ m{^(?:\x27(?:[^\x27\\]|\\.)\x27|//[^\n]*)}) { $at += length $&; next; }
        my $char = substr $rest, 0, 1;
        ++$depth if $char =~ /[({\[]/;
        --$depth if $char =~ /[)}\]]/;
        ++$argument if $char eq "," && $depth == 1;
        ++$at;
      }
      next if !@prose;
      ++$found;
      print "$name:", 1 + (substr($text, 0, $start) =~ tr/\n//), ": ", join(" | ", @prose), "\n" if $list;
    }
  }
  print "$found assertions compare prose (at most $max)\n";
  exit($found > $max ? 1 : 0);
  ' -- "$@"
