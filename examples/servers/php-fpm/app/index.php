<?php
// A page that answers at once, and /slow after ANSWER_SECONDS.
if (str_starts_with($_SERVER['REQUEST_URI'], '/slow')) {
    sleep((int) getenv('ANSWER_SECONDS'));
}
echo "done\n";
