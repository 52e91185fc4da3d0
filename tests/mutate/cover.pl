# SPDX-License-Identifier: MIT
#
# What make mutate prepares: the copy of the sources, the two builds, the list of the tests, and which lines of the product each of them
# executes. Read by tests/mutate/mutate, whose slurp, spew, now and run_limited it uses.
use strict;
use warnings;
use File::Path qw(make_path remove_tree);
use File::Basename qw(dirname);

# Brings SCRATCH/tree up to date.
sub copy_tree {
    my ($source, $tree, $scratch) = @_;
    my @files;
    my @folders = ('');
    while (defined(my $folder = shift @folders)) {
        opendir my $dir, "$source/$folder" or die "$source/$folder: $!\n";
        for my $name (sort grep { !/^\.\.?$/ } readdir $dir) {
            my $path = $folder eq '' ? $name : "$folder/$name";
            my $whole = "$source/$path";
            if (-d $whole && !-l $whole) {
                next if $name =~ /^(?:\.git|autom4te\.cache|shared)$/ || -f "$whole/config.status" || "$whole/" eq "$scratch/";
                push @folders, $path;
            } elsif (-f $whole && !-l $whole && $name ne '.git' && $name !~ /\.(?:o|lo|log|trs)$/) {
                push @files, $path;
            }
        }
    }
    for my $file (sort { (stat "$source/$a")[9] <=> (stat "$source/$b")[9] } @files) {
        next if -f "$tree/$file" && -s "$tree/$file" == -s "$source/$file" && slurp("$tree/$file") eq slurp("$source/$file");
        make_path(dirname("$tree/$file"));
        system('cp', '-p', "$source/$file", "$tree/$file") == 0 or die "cp $file\n";
        # The source may be older than its object although it changed; make compares times.
        utime undef, undef, "$tree/$file" if -f "$scratch/build/config.status";
    }
}

# Builds both folders: everything, or with ONLY no other test programs than those of its tests.
sub build_all {
    my ($tree, $scratch, $jobs, $only) = @_;
    my $log = "$scratch/make.log";
    if (!-f "$tree/configure") {
        run_limited($tree, 'autoreconf -fi', $log, 600) == 0 or die "mutate: autoreconf failed, see $log\n";
    }
    for (['build', '-O1'], ['cover', '-O1 --coverage']) {
        my ($name, $flags) = @$_;
        my $folder = "$scratch/$name";
        if (!-f "$folder/config.status") {
            print "configuring $folder\n";
            run_limited($folder, "$tree/configure CFLAGS='$flags' --with-cuda=no", $log, 900) == 0 or die "mutate: configure failed, see $log\n";
        }
        my %tests = length $only ? tests_of($folder, $scratch, $only) : ();
        my %programs = map { $_ => 1 } map { @{ $_->{programs} } } values %tests;
        my $programs = length $only ? "check_PROGRAMS='@{[sort keys %programs]}'" : '';
        print "building $folder\n";
        for my $goals ('all', "check TESTS= $programs") {
            run_limited($folder, "make -s -j$jobs $goals", $log, 7200) == 0 or die "mutate: make $goals in $folder failed, see $log\n";
        }
    }
}

# Returns the value of a variable of the Makefile, which a rule in a second makefile prints.
sub said_by_make {
    my ($build, $scratch, $name) = @_;
    spew("$scratch/show.mk", "show-mutate:\n\t\@: \$(file >$scratch/said,\$($name))\n");
    run_limited($build, "make -s -f Makefile -f $scratch/show.mk show-mutate", "$scratch/make.log", 300) == 0 or die "mutate: make does not say $name\n";
    my $said = slurp("$scratch/said");
    chomp $said;
    return $said;
}

# What is built after each change. Test programs are built before they run.
sub goals_of { my ($build, $scratch) = @_; return ('libtenon.la', split(' ', said_by_make($build, $scratch, 'TN_PLUGINS')), 'tools/tenon') }

# For each test by name (with ONLY: those that match one of its patterns): its command, and the programs that it is or starts. They have to be linked again if what they
# contain has changed: those that are no scripts of libtool contain the core, some contain files of the tools.
sub tests_of {
    my ($build, $scratch, $only) = @_;
    my $tree = "$scratch/tree";
    my @wanted = map { quotemeta($_) =~ s/\\\*/.*/gr } split ' ', $only;
    my @programs = split ' ', said_by_make($build, $scratch, 'check_PROGRAMS');
    my %tests;
    for my $name (split ' ', said_by_make($build, $scratch, 'TESTS')) {
        next if @wanted && !grep { $name =~ /^$_$/ } @wanted;
        if ($name =~ /\.sh$/) {
            my %named;
            my $text = slurp("$tree/$name") // next;
            while ($text =~ m{\b((?:tests|bench|examples)/[\w/*-]+)}g) {
                my $pattern = quotemeta($1) =~ s/\\\*/.*/gr;
                $named{$_} = 1 for grep { /^$pattern$/ } @programs;
            }
            $tests{$name} = { command => "sh $tree/$name", programs => [sort keys %named] };
        } else {
            $tests{$name} = { command => "./$name", programs => [grep { $_ eq $name } @programs] };
        }
    }
    return %tests;
}

# The C sources of the product, without generated ones and without kernels for other devices than the host.
sub product_files {
    my ($tree) = @_;
    return sort map { s{^\Q$tree\E/}{}r } map { glob "$tree/$_/*.[ch]" } 'core/*', 'lib/*', 'plugins/*', 'plugins/*/*', 'tools', 'tools/*', 'sdk/conform';
}

# The objects of a source in a build folder: those of a library are in .libs, and each program that contains the source has one of its own. A header has none.
sub objects_of { my ($build, $file) = @_; my ($folder, $stem) = $file =~ m{^(.*)/(.*)\.c$} or return; return grep { -f } glob "$build/$folder/{.libs/,}*-$stem.o" }
sub all_objects_of { my ($build) = @_; return grep { -f } map { glob "$build/$_/{.libs/,}*-*.o" } 'core/*', 'lib/*', 'plugins/*', 'plugins/*/*', 'tools', 'tools/*', 'sdk/conform' }

sub digest {
    my ($tree, @files) = @_;
    open my $pipe, '-|', 'sh', '-c', 'cd "$1" && shift && cat "$@" | cksum', 'sh', $tree, @files or die "cksum: $!\n";
    my $sum = <$pipe>;
    close $pipe;
    return $sum =~ s/\s+/-/gr;
}

# { seconds => { TEST }, lines => { FILE }{ LINE }{ TEST }, counted => { FILE }{ LINE } }. Each test runs once, alone with its counters; its earlier result is kept while
# neither the product nor the test itself has changed.
sub map_of {
    my ($tests, $tree, $scratch, $jobs) = @_;
    my $folder = "$scratch/map";
    make_path($folder);
    my $product = digest($tree, product_files($tree), map { s{^\Q$tree\E/}{}r } glob "$tree/sdk/include/tenon/*.h $tree/sdk/operators/*.ops");
    my (@missing, %file);
    for my $name (sort keys %$tests) {
        my $own = -f "$tree/$name.c" ? "$name.c" : $name;
        my @headers = map { s{^\Q$tree\E/}{}r } glob "$tree/" . dirname($name) . '/*.h';
        $file{$name} = "$folder/" . $name =~ s{/}{+}gr;
        my $key = $product . digest($tree, $own, @headers);
        $tests->{$name}{key} = $key;
        push @missing, $name unless (slurp($file{$name}) // '') =~ /\A\Q$key\E\n/;
    }
    print scalar(@missing), " tests run once, to see which lines they execute\n" if @missing;
    spew("$scratch/environment.$_", said_by_make("$scratch/$_", $scratch, 'AM_TESTS_ENVIRONMENT') . "\n") for 'build', 'cover';
    my (%running, $failed);
    while (@missing || %running) {
        while (@missing && keys %running < $jobs) {
            my $name = shift @missing;
            my $pid = fork // die "fork: $!\n";
            if ($pid == 0) {
                my $done = eval { cover_one($name, $tests->{$name}, $tree, $scratch, $file{$name}); 1 };
                print "$name: $@" unless $done;
                POSIX::_exit($done ? 0 : 1);
            }
            $running{$pid} = $name;
        }
        my $pid = wait;
        $failed ||= $? != 0;
        delete $running{$pid};
    }
    die "mutate: the lines that a test executes are not known\n" if $failed;
    my %map;
    # The lines for which gcov has a count, 0 included.
    read_counts($map{counted} = {}, $tree, "$scratch/cover", 0, sort split /\n/, `cd $scratch/cover && find core lib plugins tools sdk/conform -name '*.gcno'`);
    for my $name (sort keys %$tests) {
        my ($key, $seconds, @rows) = split /\n/, slurp($file{$name});
        $map{seconds}{$name} = $seconds;
        for (@rows) {
            my ($path, @lines) = split ' ';
            $map{lines}{$path}{$_}{$name} = 1 for @lines;
        }
    }
    return \%map;
}

# Adds the lines of the product that gcov reports as executed at least LEAST times to { FILE }{ LINE }.
sub read_counts {
    my ($lines, $tree, $cover, $least, @counters) = @_;
    my %product = map { ("$tree/$_" => $_) } product_files($tree);
    while (my @some = splice @counters, 0, 100) {
        open my $said, '-|', "cd $cover && gcov -t --json-format @some 2>/dev/null" or die "gcov: $!\n";
        while (my $row = <$said>) {
            # Each list of lines has one "file", before or after it, depending on gcov's version.
            my ($path, @seen);
            while ($row =~ /(\{?)"file": "([^"]*)"|"count": (\d+)[^{}]*?"line_number": (\d+)|"line_number": (\d+)[^{}]*?"count": (\d+)/g) {
                if (!defined $2) {
                    push @seen, $4 // $5 if ($3 // $6) >= $least;
                    next unless defined $path;
                } elsif ($1 ne '') {
                    $path = $2;
                }
                my $of = defined $2 && $1 eq '' ? $2 : $path // next;
                if (my $file = $product{$of}) { $lines->{$file}{$_} = 1 for @seen }
                @seen = ();
            }
        }
        close $said;
    }
}

sub cover_one {
    my ($name, $test, $tree, $scratch, $to) = @_;
    my $cover = "$scratch/cover";
    my $place = "$scratch/counters/" . $name =~ s{/}{+}gr;
    remove_tree($place);
    make_path($place);
    my $strip = () = $cover =~ m{/}g;
    my $began = now();
    my $status = run_limited($cover, ". $scratch/environment.cover; GCOV_PREFIX=$place; GCOV_PREFIX_STRIP=$strip; export GCOV_PREFIX GCOV_PREFIX_STRIP; $test->{command}",
        "$place/log", 1800);
    my $seconds = now() - $began;
    die "it does not start, see $place/log\n" if $status == 126 || $status == 127;
    print "  $name has status $status here; what it executed counts\n" if $status != 0 && $status != 77;
    my %lines;
    my @counters = sort split /\n/, `find $place -name '*.gcda'`;
    for my $counter (@counters) {
        (my $notes = $counter) =~ s/\.gcda$/.gcno/;
        symlink "$cover" . substr($notes, length $place), $notes;
    }
    read_counts(\%lines, $tree, $cover, 1, @counters);
    remove_tree($place);
    my $text = "$test->{key}\n$seconds\n";
    $text .= join(' ', $_, sort { $a <=> $b } keys %{ $lines{$_} }) . "\n" for sort keys %lines;
    spew($to, $text);
}

1;
