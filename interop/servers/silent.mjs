// Reads, but never responds.
process.stdin.resume()
