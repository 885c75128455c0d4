import sys, subprocess
from engine.build import build_for, ENGINE
p = build_for().program(ENGINE/"tests"/"check.cpp")
print(p, flush=True)
subprocess.run([str(p),"--rounds","10"],check=True)
for s in ("AVX2","AVX-512"):
    subprocess.run([str(p),"--set",s,"--time"],check=True)
