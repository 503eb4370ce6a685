#!/bin/sh
# Stands in for the `fet` that cargo builds: refuses the one cell it is asked for, so that the test sees that it was.
cat >/dev/null
echo '{"error":"the stand-in was asked"}'
