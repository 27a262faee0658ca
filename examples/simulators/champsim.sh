# Compiles ChampSim, with the packages of the distribution in place of its Makefile and vcpkg.
# sh -e champsim.sh library SOURCE: what does not depend on the configuration, and a copy of SOURCE
# sh -e champsim.sh program LIBRARY: the simulator of config.json, with that library
flags="-std=c++17 -O3 -I$2/inc"
case $1 in
library)
    cd "$2" && cp -r branch btb prefetcher replacement src inc config config.sh "$OLDPWD" && cd "$OLDPWD"
    : > inc/module_decl.inc
    # A heartbeat every 50,000 instructions, not every 10 million.
    sed -i 's/\(STAT_PRINTING_PERIOD = \)10000000/\150000/' src/ooo_cpu.cc
    g++ -std=c++17 -O3 -Iinc -c $(ls src/*.cc | grep -v -e /main.cc -e /generated_environment.cc)
    g++ -std=c++17 -O3 -Iinc -DCHAMPSIM_MODULE -c branch/*/*.cc btb/*/*.cc prefetcher/*/*.cc replacement/*/*.cc
    ar rc libchampsim.a *.o
    rm *.o
    ;;
program)
    python3 "$2/config.sh" --prefix . --makedir . --no-compile-all-modules config.json
    build=$(grep -o '0x[0-9a-f]*' .csconfig/core_inst.inc | head -n 1)
    g++ -std=c++17 -DCHAMPSIM_BUILD=$build -I.csconfig -I"$2/inc" "$2/src/main.cc" \
        "$2/src/generated_environment.cc" "$2/libchampsim.a" -llzma -lz -lbz2 -lfmt -o champsim
    ;;
esac
