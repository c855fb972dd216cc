// Exits immediately.
process.stderr.write('one\ntwo\nno database at 127.0.0.1:5432\n')
process.exitCode = 3
