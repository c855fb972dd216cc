throw new Error('it fails')
