// A module that throws while loading.
throw new Error('no such thing')
