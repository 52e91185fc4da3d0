#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Completion for shells: the words are the commands of the tool and the options that the help of a
# command lists, and the scripts that are installed give them to bash and zsh.
. "${abs_srcdir:-$srcdir}/tests/tools/commands.sh"
completion=$here/../../tools/completion

# the commands are those of `tenon help`, also after `help`
check 0 '' help --json
"$PERL" -MJSON::PP -e 'local $/; print "$_->{name}\n" for @{decode_json(<STDIN>)->{commands}}' \
    <out >commands
check 0 '' complete
cmp out commands || complain 'other commands than those of the help'
check 0 '' complete -- help tr
test "$(cat out)" = train || complain 'help tr'
check 0 '^finetune:trains a new head' complete --describe -- fine
# the options are those of the help of a command, of each kind: a table, settings, its own text
for name in eval train sweep profile run check; do
    check 0 '' help $name
    sed -n 's/^  \(--[a-z][a-z-]*\).*/\1/p' out >wanted
    test -s wanted || complain "$name has no options"
    check 0 '' complete -- $name x --
    cmp out wanted || complain "$name: other options than those of the help"
done
check 0 '' complete -- train x --find
test "$(cat out)" = --find-lr || complain 'train --find'
check 0 '^--max-steps:ends after this number' complete --describe -- train --max-
# a description that takes several lines of the help is whole
check 0 '^--loss:the loss; default.* \[N, \.\.\.\], MSELoss\(\) for floating targets$' \
    complete --describe -- eval x --lo
check 0 '^--json:at the end JSON .*; the progress then goes to standard error$' \
    complete --describe -- train x --js
# files after an option with a value, and where no option begins: nothing is printed
for words in 'eval --data -' 'eval ru' 'nothing --' 'nothing a'; do
    check 0 '' complete -- $words
    test -s out && complain "complete $words: not empty"
done
check 0 '^--json$' complete -- eval --confusion --j

# bash: the words that a user has typed, and files where there is nothing
command -v bash >/dev/null && {
    sed 's/@TOOL@-@ABI@/other/; s/@TOOL@/tenon/' "$completion/bash" >tenon.bash
    cat >words.bash <<'END'
. ./tenon.bash
ask() { COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)); _tenon; echo "${COMPREPLY[*]}"; }
complete -p tenon other
ask "$tenon" fin
ask "$tenon" train 'Sequential(Linear(2, 2))' --pat
ask "$tenon" train --data ''
END
    tenon=$tenon bash words.bash >out 2>err
    printf '%s\n' 'complete -o default -F _tenon tenon' 'complete -o default -F _tenon other' \
        finetune --patience '' | cmp - out || complain 'bash'
}
command -v zsh >/dev/null && {
    zsh -n "$completion/zsh" || complain 'zsh: the script cannot be read'
}
exit $bad
