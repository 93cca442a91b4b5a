#!/usr/bin/env bash
# Counts phrases that were carried over word by word from another language: scripts/english_patterns.txt lists them. None may be
# in README.md, in a page, in a string of the programs (help, messages) or in a header that is installed; at most 83 in lib.
# Prints one line for each phrase where none may be, and the counts; exits with 1 if there are too many.
#
#   scripts/check_english.sh              the check
#   scripts/check_english.sh --list       every phrase, with what to write instead
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

git ls-files -co --exclude-standard -- '*.md' 'lib/**' 'apps/**' 'proto/**' |
  grep -E '\.(md|h|cc|cu|cuh|proto)$' |
  perl -e '
  use strict;
  my $max_in_lib = 83;
  my $installed = qr{^lib/(?:common/(?:base|observe|store)|engine/(?:tensor|comm|graph|ops|optim|models|passes|strategy|exec|data|train|api))/.*\.h$};
  my $list = @ARGV && $ARGV[0] eq "--list";
  my @patterns;
  open my $file, "<", "scripts/english_patterns.txt" or die "scripts/english_patterns.txt: $!\n";
  while (<$file>) {
    chomp;
    next if /^#/ || /^$/;
    my ($where, $pattern, $instead) = split /\t/;
    push @patterns, [$where, qr/$pattern/, $instead];
  }
  close $file;

  my ($path, %count, $bad);
  # Counts the phrases of a text, which consists of [LINE NUMBER, TEXT]... kind: c, s or p.
  sub check_text {
    my ($kind, @lines) = @_;
    my ($text, @starts) = ("");
    for my $line (@lines) {
      $text .= " " if $kind ne "s" && $text ne "";
      push @starts, [length $text, $line->[0]];
      $text .= $line->[1];
    }
    for my $pattern (@patterns) {
      next if $pattern->[0] ne "*" && index($pattern->[0], $kind) < 0;
      while ($text =~ /$pattern->[1]/g) {
        my ($from, $phrase, $at) = ($-[0], $&, 0);
        for my $start (@starts) { $at = $start->[1] if $start->[0] <= $from + 2; }
        my $place = $kind eq "p" ? "pages" : $kind eq "s" ? "strings" : $path =~ $installed ? "installed headers" : "other comments";
        $count{$place}++;
        $count{lib}++ if $path =~ m{^lib/};
        my $refused = $place ne "other comments";
        $bad ||= $refused;
        print "$path:$at: \"$phrase\": $pattern->[2]\n" if $list || $refused;
      }
    }
  }
  # Paragraphs, list items and table rows of a page, without its code.
  sub check_page {
    my ($code, @text) = 0;
    my $flush = sub { check_text("p", @text) if @text; @text = (); };
    for my $i (0 .. $#_) {
      my $line = $_[$i];
      if ($line =~ /^\s*```/) { $code = !$code; $flush->(); next; }
      next if $code;
      $flush->() if $line =~ /^\s*$|^#|^\s*[-*] |^\s*\d+\. |^\|/;
      next if $line =~ /^\s*$|^<!--/;
      $line =~ s/^\s*(?:[-*] |\d+\. |#+ )//;
      $line =~ s/`[^`]*`/X/g;
      $line =~ s/\]\([^)]*\)/]/g;
      push @text, [$i + 1, $line];
    }
    $flush->();
  }
  # Comments of adjacent lines are one text, and so are adjacent string literals.
  sub check_source {
    my (@comment, @string);
    for my $i (0 .. $#_) {
      my ($rest, $code, $comment, @literals) = ($_[$i], "");
      next if $rest =~ /^\s*#\s*include/;
      while ($rest ne "") {
        if ($rest =~ s/^"((?:[^"\\]|\\.)*)"//) { push @literals, $1; $code .= "\""; }
        elsif ($rest =~ s/^\x27(?:[^\x27\\]|\\.)\x27//) { $code .= "c"; }
        elsif ($rest =~ s{^//+ ?(.*)$}{}) { $comment = $1; }
        else { $rest =~ s/^(.)//; $code .= $1; }
      }
      if (defined $comment) {
        my $follows = @comment && $comment[-1][0] == $i && $code =~ /^\s*$/;
        if (!$follows) { check_text("c", @comment) if @comment; @comment = (); }
        push @comment, [$i + 1, $comment];
      }
      if (@literals) {
        my $follows = @string && $string[-1][0] == $i && $code =~ /^\s*"/;
        if (!$follows) { check_text("s", @string) if @string; @string = (); }
        push @string, [$i + 1, shift @literals];
        for my $literal (@literals) { check_text("s", @string); @string = ([$i + 1, $literal]); }
      }
    }
    check_text("c", @comment) if @comment;
    check_text("s", @string) if @string;
  }

  while (my $name = <STDIN>) {
    chomp $name;
    open my $input, "<", $name or next;
    my @lines = <$input>;
    close $input;
    chomp @lines;
    $path = $name;
    $name =~ /\.md$/ ? check_page(@lines) : check_source(@lines);
  }
  my $lib = $count{lib} // 0;
  print join(", ", map { "$_ " . ($count{$_} // 0) } "pages", "strings", "installed headers"), "; lib in all $lib (at most $max_in_lib)\n";
  exit($bad || $lib > $max_in_lib ? 1 : 0);
  ' -- "$@"
