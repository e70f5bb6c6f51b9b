package plan

// ZipfRate is zipfRate for tests.
var ZipfRate = zipfRate
