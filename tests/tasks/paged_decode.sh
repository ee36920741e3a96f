# A task of a new user, paged decode in C, built with pkg-config. From c.md and serving.md.
cc -std=c11 -Wall -Werror "$TASKS/paged_decode.c" $(pkg-config --cflags --libs flashgen) -Wl,-rpath,$(pkg-config --variable=libdir flashgen) -lm -o paged_decode
./paged_decode
