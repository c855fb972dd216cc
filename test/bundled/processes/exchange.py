# Exchanges files and directories with links that lead out, each at one stroke (Linux), until its input ends.
import ctypes
import os
import select
import sys

root, outside = sys.argv[1:3]
renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
renameat2.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
AT_FDCWD, RENAME_EXCHANGE = -100, 2

os.chdir(root)
for folder in ["directory/deep", "still/deep"]:
    os.makedirs(folder)
for file in ["file", "directory/secret", "directory/deep/secret", "still/deep/secret"]:
    with open(file, "w") as opened:
        opened.write("inside")
os.symlink(outside + "/secret", ".file")
os.symlink(outside, ".directory")
os.symlink("directory", "turning")
os.symlink(outside, ".turning")
os.symlink(outside + "/deep", "still/.deep")
PAIRS = [(b"file", b".file"), (b"directory", b".directory"), (b"turning", b".turning"), (b"still/deep", b"still/.deep")]

# It must be able to at all; twice, so that nothing has changed.
for _ in range(2):
    if renameat2(AT_FDCWD, b"file", AT_FDCWD, b".file", RENAME_EXCHANGE) != 0:
        sys.exit("renameat2: " + os.strerror(ctypes.get_errno()))

print("ready", flush=True)
swaps = rounds = 0
while not select.select([sys.stdin], [], [], 0)[0]:
    for _ in range(100):
        for one, other in PAIRS:
            if renameat2(AT_FDCWD, one, AT_FDCWD, other, RENAME_EXCHANGE) == 0:
                swaps += 1
    rounds += 1
    if rounds == 1:
        print("swapping", flush=True)
print(swaps, flush=True)
